# SPDX-License-Identifier: Apache-2.0
"""read_hta.py FOLDER: what Holistic Trace Analysis finds in a folder of traces, as JSON; with
--critical-path that analysis alone, with --operators the operators as it nests them."""

import collections
import json
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")

from hta.common.trace_call_graph import CallGraph  # noqa: E402
from hta.configs.parser_config import AVAILABLE_ARGS, ParserConfig  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402

OPERATOR_ARGS = ("input_dims", "input_type", "concrete_inputs", "sequence_number", "fwd_thread")
OPERATOR_COLUMNS = ["s_name", "s_cat", "depth", "height", "input_dims", "input_type",
                    "concrete_inputs", "sequence", "fwd_thread_id", "num_kernels",
                    "kernel_dur_sum"]


def rows(frame):
    return json.loads(frame.reset_index().to_json(orient="records"))


def kernels_of(analysis, rank):
    """Number of kernels that HTA itself has read."""
    frame = analysis.t.get_trace(rank)
    names = analysis.t.symbol_table.get_sym_table()
    return int((frame["cat"].map(lambda index: names[index]) == "kernel").sum())


def operators(folder):
    """Of each thread of rank 0, in the order of begins, the outer one first."""
    config = ParserConfig.get_default_cfg()
    config.set_args(ParserConfig.get_default_args() +
                    [AVAILABLE_ARGS[f"cpu_op::{name}"] for name in OPERATOR_ARGS])
    ParserConfig.set_default_cfg(config)
    analysis = TraceAnalysis(trace_dir=folder)
    CallGraph(analysis.t)
    frame = analysis.t.get_trace(0)
    analysis.t.symbol_table.decode_df(frame, create_new_columns=True)
    frame = frame[frame["s_cat"].isin(["cpu_op", "user_annotation"])]
    frame = frame.assign(length=-frame["dur"]).sort_values(["ts", "length"])
    return [rows(part[OPERATOR_COLUMNS]) for _, part in frame.groupby("tid", sort=False)]


def main(folder, critical_path):
    if "--operators" in sys.argv:
        print(json.dumps(operators(folder)))
        return
    analysis = TraceAnalysis(trace_dir=folder)
    ranks = sorted(analysis.t.traces)
    graph, success = analysis.critical_path_analysis(rank=ranks[0], annotation="ProfilerStep",
                                                     instance_id=1)
    edges = collections.Counter(edge["object"].type.value for _, _, edge in graph.edges(data=True))
    if critical_path:
        print(json.dumps({"critical_path": success, "edges": edges}))
        return
    quiet = {"visualize": False}
    found = {"ranks": ranks, "kernels": {rank: kernels_of(analysis, rank) for rank in ranks}}
    found["temporal"] = rows(analysis.get_temporal_breakdown(**quiet))
    types, kernels = analysis.get_gpu_kernel_breakdown(**quiet)
    found["types"], found["names"] = rows(types), rows(kernels)
    found["idle"] = rows(analysis.get_idle_time_breakdown(ranks=ranks, **quiet)[0])
    found["overlap"] = rows(analysis.get_comm_comp_overlap(**quiet))
    series = analysis.get_queue_length_time_series(ranks=ranks)
    found["queues"] = {rank: sorted({int(n) for n in frame["stream"]})
                       for rank, frame in series.items()}
    found["queue_min"] = min(int(frame["queue_length"].min()) for frame in series.values())
    summary = analysis.get_memory_bw_summary(ranks=ranks)
    summary.columns = [column[-1] for column in summary.columns]
    found["bandwidth"] = rows(summary)
    launches = analysis.get_cuda_kernel_launch_stats(ranks=ranks, **quiet)
    found["launches"] = {rank: rows(frame) for rank, frame in launches.items()}
    annotations = analysis.get_gpu_user_annotation_breakdown(use_gpu_annotation=True, **quiet)
    found["annotations"] = rows(annotations)
    found["steps"] = [int(step) for step in analysis.get_profiler_steps()]
    with tempfile.TemporaryDirectory() as out:
        sequences = analysis.get_frequent_cuda_kernel_sequences(
            operator_name="cudaGraphLaunch", output_dir=out, **quiet)
    found["sequences"] = rows(sequences)
    found["critical_path"] = success
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], "--critical-path" in sys.argv)
