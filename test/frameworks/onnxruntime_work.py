# SPDX-License-Identifier: Apache-2.0
"""A little of ONNX Runtime: a session on the GPU with elementwise kernels and a matrix product."""

import numpy
import onnxruntime
from onnx import TensorProto, helper

SHAPE = [64, 64]
nodes = [helper.make_node("MatMul", ["a", "a"], ["b"]), helper.make_node("Add", ["b", "a"], ["c"]),
         helper.make_node("Relu", ["c"], ["d"])]
value = helper.make_tensor_value_info
graph = helper.make_graph(nodes, "work", [value("a", TensorProto.FLOAT, SHAPE)],
                          [value("d", TensorProto.FLOAT, SHAPE)])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
session = onnxruntime.InferenceSession(model.SerializeToString(),
                                       providers=["CUDAExecutionProvider"])
print(onnxruntime.__version__, session.get_providers()[0])
a = numpy.ones(SHAPE, dtype=numpy.float32)
for _ in range(20):
    [d] = session.run(None, {"a": a})
print(d.shape)
