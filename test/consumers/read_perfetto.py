# SPDX-License-Identifier: Apache-2.0
"""read_perfetto.py TRACE: what Perfetto's trace processor imports of a trace, as JSON.

The program is the one that $PERFETTO_TRACE_PROCESSOR names, or what the package downloads."""

import json
import os
import sys

from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig


def main(path):
    config = TraceProcessorConfig(bin_path=os.environ.get("PERFETTO_TRACE_PROCESSOR"))
    with TraceProcessor(trace=path, config=config) as processor:
        def rows(query):
            return [dict(row.__dict__) for row in processor.query(query)]
        found = {
            "slices": {row["category"]: row["n"] for row in
                       rows("select category, count(*) as n from slice where dur >= 0 "
                            "and category is not null group by category")},
            "flows": rows("select count(*) as n from flow")[0]["n"],
            "grids": rows("select count(*) as n from slice join args using (arg_set_id) where "
                          "category = 'kernel' and key = 'args.registers per thread'")[0]["n"],
            "errors": rows("select name, value from stats where value > 0 and "
                           "severity in ('error', 'data_loss')"),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
