// SPDX-License-Identifier: Apache-2.0
// gloo's ring allreduce over TCP. Usage, once a rank: gloo RANK NP DIRECTORY INTERFACE OPERATION
// SIZES OPERATION: allreduce, or gradients (ResNet-50's in buckets of 25 MiB, as torch's DDP sends
// them).
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "bench/hvd_bench/resnet50.h"
#include "bench/peers/timing.h"

namespace {

template <class T>
void Reduce(const std::shared_ptr<gloo::Context>& context, T* data, size_t count,
            void (*function)(void*, const void*, const void*, size_t)) {
  gloo::AllreduceOptions options(context);
  options.setOutput(data, count);
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options.setReduceFunction(function);
  gloo::allreduce(options);
}

std::vector<size_t> Buckets() {
  constexpr size_t kBucket = (size_t{25} << 20) / sizeof(float);
  std::vector<size_t> buckets;
  size_t left = 0;
  for (const size_t count : bench::Resnet50Gradients()) left += count;
  for (; left > 0; left -= buckets.back()) buckets.push_back(std::min(left, kBucket));
  return buckets;
}

}  // namespace

int main(int, char** argv) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = argv[4];
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(argv[3]);
  auto context =
      std::make_shared<gloo::rendezvous::Context>(std::atoi(argv[1]), std::atoi(argv[2]));
  context->connectFullMesh(store, device);

  std::vector<float> data;
  peers::Peer peer;
  peer.name = "gloo";
  peer.rank = context->rank;
  peer.size = context->size;
  peer.barrier = [&] {
    gloo::BarrierOptions options(context);
    gloo::barrier(options);
  };
  peer.max = [&](double mine) {
    Reduce(context, &mine, 1, &gloo::max<double>);
    return mine;
  };
  const auto sum = [&](float* x, size_t count) { Reduce(context, x, count, &gloo::sum<float>); };
  if (std::string(argv[5]) == "gradients") {
    peers::SumGradients(&peer, Buckets(), sum);
  } else {
    const auto buffer = [&](size_t count) {
      data.assign(count, 0);
      return data.data();
    };
    peers::SumInPlace(&peer, buffer, sum);
  }
  peers::Measure(peer, peers::ParseSizes(argv[6]));
}
