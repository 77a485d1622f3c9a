#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# test/slurm/run.sh [BUILD]: two steps and a report under a real Slurm of one node, by hand, as
# root, on a machine whose own it is not: apt-get install slurm-wlm munge. Everything that it starts
# ends with it; its files are in a folder of their own.
set -eu
build=$(realpath "${1:-build}")
here=$(mktemp -d) name=$(hostname -s)
cd "$here"
mkdir state spool run

cat > slurm.conf << END
ClusterName=one
SlurmctldHost=$name
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$here/run/munge.socket
StateSaveLocation=$here/state
SlurmdSpoolDir=$here/spool
SlurmctldPidFile=$here/ctld.pid
SlurmdPidFile=$here/d.pid
SlurmctldPort=26817
SlurmdPort=26818
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
NodeName=$name NodeAddr=127.0.0.1 CPUs=$(nproc)
PartitionName=main Nodes=ALL Default=YES OverSubscribe=FORCE:8
END
export SLURM_CONF="$here/slurm.conf" LD_LIBRARY_PATH="$build/sim"
dd if=/dev/urandom of=key bs=128 count=1 2> /dev/null
chmod 600 key
munged --force --key-file=key --socket=run/munge.socket --pid-file=run/munge.pid \
    --log-file=run/munge.log --seed-file=run/munge.seed
trap 'for pid in d.pid ctld.pid run/munge.pid; do kill "$(cat $pid)" || :; done' EXIT
slurmctld
slurmd
until sinfo -h -t idle | grep -q main; do sleep 1; done

for _ in 1 2; do
    srun -n 2 --overcommit "$build/gpuprof-collector" run -o data "$build/programs/demo" > run.log
done
"$build/gpuprof-collector" report --table=ranks data > ranks.txt 2> said.txt
grep 'are of 2 jobs: job 0 (4 processes, SLURM_JOB_ID=' said.txt
grep -c 'rank 1 of job 1' ranks.txt

srun -n 4 --overcommit "$build/gpuprof-collector" report --partial -o part data
"$build/gpuprof-collector" report data > whole.txt
"$build/gpuprof-collector" report --combine part.* > sum.txt
cmp whole.txt sum.txt
echo "the parts are the whole: $here"
