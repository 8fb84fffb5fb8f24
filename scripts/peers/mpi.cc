// MPI_Allreduce, of whichever MPI compiled this. Usage: mpirun -np N mpi NAME SIZES
#include <mpi.h>

#include "scripts/peers/timing.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::vector<float> data;
  peers::Peer peer;
  peer.name = argv[1];
  MPI_Comm_rank(MPI_COMM_WORLD, &peer.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &peer.size);
  peer.buffer = [&](size_t count) {
    data.assign(count, 0);
    return data.data();
  };
  peer.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
  peer.sum = [](float* x, size_t count) {
    MPI_Allreduce(MPI_IN_PLACE, x, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  peer.max = [](double mine) {
    double most = 0;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
  };
  peers::Measure(peer, peers::ParseSizes(argv[2]));
  MPI_Finalize();
}
