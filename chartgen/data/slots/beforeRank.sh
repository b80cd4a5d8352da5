export FABRIC_PORT="$((LOCAL_RANK / 4))"
