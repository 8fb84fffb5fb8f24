// gloo's ring allreduce over TCP on the loopback. Usage, once a rank: gloo RANK NP DIRECTORY SIZES
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "scripts/peers/timing.h"

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

}  // namespace

int main(int, char** argv) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = "lo";
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
  peer.buffer = [&](size_t count) {
    data.assign(count, 0);
    return data.data();
  };
  peer.barrier = [&] {
    gloo::BarrierOptions options(context);
    gloo::barrier(options);
  };
  peer.sum = [&](float* x, size_t count) { Reduce(context, x, count, &gloo::sum<float>); };
  peer.max = [&](double mine) {
    Reduce(context, &mine, 1, &gloo::max<double>);
    return mine;
  };
  peers::Measure(peer, peers::ParseSizes(argv[4]));
}
