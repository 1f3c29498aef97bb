"""Run under the interposer: a matrix product and a CUDA graph of PyTorch's, each checked against the CPU."""

import json
import time

import torch


def main():
    torch.manual_seed(1)
    a, b = torch.randn(512, 512), torch.randn(512, 512)
    want = a @ b
    torch.backends.cuda.matmul.allow_tf32 = False
    da, db = a.cuda(), b.cuda()
    product_error = (da @ db).cpu().sub(want).abs().max().item()

    # The usual way to a graph: warm up on a side stream, capture, replay with new inputs.
    static = torch.zeros_like(da)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            (static @ db).relu()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = (static @ db).relu()
    static.copy_(da)
    graph.replay()
    torch.cuda.synchronize()
    graph_error = out.cpu().sub(want.relu()).abs().max().item()

    start = time.perf_counter()
    for _ in range(1000):
        graph.replay()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    print(json.dumps({
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(0),
        "product_error": product_error,
        "graph_error": graph_error,
        "graph_replays_per_s": round(1000 / seconds, 1),
    }))
    # 512 products of numbers around one: float32 keeps them well inside this.
    raise SystemExit(0 if product_error < 1e-2 and graph_error < 1e-2 else 1)


main()
