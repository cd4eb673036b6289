# SPDX-License-Identifier: Apache-2.0
# Runs the example for Slurm without Slurm: mpirun starts the processes.
command -v preprocess_data_mpi > found || { echo "this build has no MPI" >&2; exit 77; }
script=$CASE_DIR/../../../scripts/slurm/preprocess_mpi.sbatch
for i in $(seq 2000); do echo "{\"text\": \"$i\"}"; done > in.jsonl
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0
export OMPI_MCA_rmaps_base_oversubscribe=1 MILLRACE_TEST_TASKS=5
export INPUT=in.jsonl OUTPUT=out/web \
  FLAGS='--append-eod --tokenizer-type ByteLevelTokenizer' SLURM_CPUS_PER_TASK=1
LAUNCH='mpirun -n 3' bash "$script" 2> log
LAUNCH='mpirun -n 2' bash "$script" 2> log  # runs again, with nothing left to do
grep -c 'already complete' log
preprocess_bytes --input in.jsonl --output-prefix whole --append-eod 2> log
for suffix in bin idx meta sum src; do
  cmp out/web_text_document.$suffix whole_text_document.$suffix
done
