# SPDX-License-Identifier: Apache-2.0
# Help and version go to stdout, and are printed once, whatever the number of processes.
command -v preprocess_data_mpi > found || { echo "this build has no MPI" >&2; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0
export OMPI_MCA_rmaps_base_oversubscribe=1
mpirun -n 2 preprocess_data_mpi --help all > help
grep -c 'usage: mpirun -n N preprocess_data_mpi' help
for flag in input output-prefix resume overwrite workers metrics tokenizer-type json help version; do
  grep -q -- "--$flag\b" help
done
! grep -q -e '--task' -e '--dry-run' help
mpirun -n 2 preprocess_data_mpi --version | grep -Exc 'preprocess_data_mpi \(millrace\) [0-9.]+'
