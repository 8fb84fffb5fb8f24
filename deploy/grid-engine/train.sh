#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job with fixed ranks: qsub train.sh python train.py --epochs 10
# Four ranks, wherever there are slots; say more by qsub's own options (-pe hvd 16).
#$ -S /bin/bash
#$ -N train
#$ -cwd
#$ -j y
#$ -pe hvd 4
# USR2 comes a while before KILL (queue_conf, notify): hvdrun then lets the ranks save, and says who ended them.
#$ -notify
set -eu
[ $# -gt 0 ] || { echo "usage: qsub [options] train.sh command [arguments]" >&2; exit 2; }
# Hosts and number of ranks are Grid Engine's. Without "exec" USR2 would end this shell, and the job with it.
exec hvdrun --output-filename "ranks-$JOB_ID" "$@"
