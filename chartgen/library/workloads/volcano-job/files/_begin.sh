IFS=, read -ra hosts <<<"${VC_MPIWORKER_HOSTS:?not set by the svc plugin of Volcano}"
