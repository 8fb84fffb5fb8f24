// SPDX-License-Identifier: Apache-2.0
// Collectives of whichever MPI compiled this. Usage: mpirun -np N mpi NAME OPERATION SIZES
// Bytes are of the buffer; for allgather of the whole result, for reducescatter of the whole input.
#include <mpi.h>

#include <cstring>
#include <map>

#include "bench/hvd_bench/resnet50.h"
#include "bench/peers/timing.h"

namespace {

void Sum(float* data, size_t count) {
  MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

// Equal shares of a whole; who has what before and after is the operation's.
struct Shares {
  std::vector<float> input, output;
  int count = 0;  // elements of a share
};

using Call = void (*)(Shares* shares);

void Allgather(Shares* s) {
  MPI_Allgather(s->input.data(), s->count, MPI_FLOAT, s->output.data(), s->count, MPI_FLOAT,
                MPI_COMM_WORLD);
}
void ReduceScatter(Shares* s) {
  MPI_Reduce_scatter_block(s->input.data(), s->output.data(), s->count, MPI_FLOAT, MPI_SUM,
                           MPI_COMM_WORLD);
}
void Alltoall(Shares* s) {
  MPI_Alltoall(s->input.data(), s->count, MPI_FLOAT, s->output.data(), s->count, MPI_FLOAT,
               MPI_COMM_WORLD);
}
void Broadcast(Shares* s) {
  MPI_Bcast(s->output.data(), static_cast<int>(s->output.size()), MPI_FLOAT, 0, MPI_COMM_WORLD);
}

struct Operation {
  Call call;
  bool whole_input, whole_output;  // else one share
  // The values of the first and the last element, by the number of ranks; rank r brings r + 1.
  float (*first)(int size, int rank);
  float (*last)(int size, int rank);
};

float One(int, int) { return 1; }
float Size(int size, int) { return static_cast<float>(size); }
float SumOfAll(int size, int) { return static_cast<float>(size * (size + 1)) / 2; }

const std::map<std::string, Operation> kOperations = {
    {"allgather", {Allgather, false, true, One, Size}},
    {"reducescatter", {ReduceScatter, true, false, SumOfAll, SumOfAll}},
    {"alltoall", {Alltoall, true, true, One, Size}},
    {"broadcast", {Broadcast, false, true, One, One}},
};

void Exchange(peers::Peer* peer, const Operation& operation) {
  auto shares = std::make_shared<Shares>();
  const int size = peer->size, rank = peer->rank;
  const bool rooted = operation.call == Broadcast;
  peer->bus_factor = rooted ? 1 : 1.0 * (size - 1) / size;
  peer->prepare = [=](size_t bytes) {
    const size_t share = std::max<size_t>(1, bytes / sizeof(float) / static_cast<size_t>(size));
    const size_t whole = share * static_cast<size_t>(size);
    shares->count = static_cast<int>(share);
    shares->input.assign(rooted ? 0 : operation.whole_input ? whole : share, 0);
    shares->output.assign(operation.whole_output ? whole : share, 0);
  };
  peer->fill = [=] {
    const float mine = static_cast<float>(rank + 1);
    std::fill(shares->input.begin(), shares->input.end(), mine);
    std::fill(shares->output.begin(), shares->output.end(), rooted ? mine : 0);
  };
  peer->call = [=] { operation.call(shares.get()); };
  peer->check = [=] {
    return shares->output.front() == operation.first(size, rank) &&
           shares->output.back() == operation.last(size, rank);
  };
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::vector<float> data;
  peers::Peer peer;
  peer.name = argv[1];
  peer.op = argv[2];
  MPI_Comm_rank(MPI_COMM_WORLD, &peer.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &peer.size);
  peer.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
  peer.max = [](double mine) {
    double most = 0;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
  };
  if (peer.op == "allreduce") {
    const auto buffer = [&](size_t count) {
      data.assign(count, 0);
      return data.data();
    };
    peers::SumInPlace(&peer, buffer, Sum);
  } else if (peer.op == "gradients") {
    peers::SumGradients(&peer, bench::Resnet50Gradients(), Sum);
  } else {
    Exchange(&peer, kOperations.at(peer.op));
  }
  peers::Measure(peer, peers::ParseSizes(argv[3]));
  MPI_Finalize();
}
