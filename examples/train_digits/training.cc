#include "examples/train_digits/training.h"

#include <algorithm>
#include <chrono>

#include "hvd/hvd.hpp"

namespace digits {
namespace {

// [begin, end) of `count` things that are this rank's; shares differ by one at most and may be
// empty.
struct Share {
  explicit Share(size_t count)
      : begin(count * hvd::rank() / hvd::size()), end(count * (hvd::rank() + 1) / hvd::size()) {}
  size_t begin;
  size_t end;
};

// What is trained, and by what.
struct Model {
  Network network, gradient;
  Sums* sums;
};

// Rank 0's parameters become everyone's.
void BroadcastParameters(Network* network) {
  hvd::broadcast(network->hidden.weight, 0, "hidden.weight");
  hvd::broadcast(network->hidden.bias, 0, "hidden.bias");
  hvd::broadcast(network->output.weight, 0, "output.weight");
  hvd::broadcast(network->output.bias, 0, "output.bias");
}

// One step of gradient descent on a batch. Each layer's gradient travels while the next is
// computed: sums over the ranks, divided by the images of the whole batch, because shares may be
// uneven. Returns the sum of this rank's losses.
double Step(const std::vector<const Image*>& mine, size_t batch, float learning_rate,
            Model* model) {
  Network* const gradient = &model->gradient;
  const double loss = AddGradients(model->network, mine, gradient, [&](Layer* layer) {
    const std::string name = layer == &gradient->hidden ? "hidden" : "output";
    model->sums->Begin(name + ".weight.grad", &layer->weight);
    model->sums->Begin(name + ".bias.grad", &layer->bias);
  });
  model->sums->End();
  Descend(&model->network, *gradient, learning_rate / static_cast<float>(batch));
  return loss;
}

// Goes once through the training images in this epoch's order; returns the mean loss of all ranks.
double TrainEpoch(const std::vector<Image>& images, const std::vector<uint32_t>& order,
                  const TrainingOptions& options, Model* model) {
  double loss = 0;
  for (size_t at = 0; at < order.size(); at += options.batch) {
    const size_t batch = std::min(options.batch, order.size() - at);
    const Share share(batch);
    std::vector<const Image*> mine;
    for (size_t i = share.begin; i < share.end; ++i) mine.push_back(&images[order[at + i]]);
    loss += Step(mine, batch, options.learning_rate, model);
  }
  hvd::allreduce(&loss, 1, hvd::Op::kSum, "epoch.loss");
  return loss / static_cast<double>(images.size());
}

double Accuracy(const Network& network, const std::vector<Image>& images) {
  const Share share(images.size());
  int64_t right = 0;
  for (size_t i = share.begin; i < share.end; ++i) {
    right += Classify(network, images[i]) == images[i].label;
  }
  hvd::allreduce(&right, 1, hvd::Op::kSum, "test.right");
  return static_cast<double>(right) / static_cast<double>(images.size());
}

}  // namespace

void Train(const Digits& digits, const TrainingOptions& options, Sums* sums,
           const std::function<void(const EpochReport&)>& report) {
  Model model{Network(options.hidden_units), Network(options.hidden_units), sums};
  if (hvd::rank() == 0) FillRandomly(&model.network, options.seed);
  BroadcastParameters(&model.network);
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<uint32_t> order =
        Shuffled(digits.train.size(), options.seed + static_cast<uint64_t>(epoch));
    EpochReport done;
    done.epoch = epoch;
    done.loss = TrainEpoch(digits.train, order, options, &model);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    done.samples_per_second = static_cast<double>(order.size()) / took.count();
    done.test_accuracy = Accuracy(model.network, digits.test);
    report(done);
  }
}

}  // namespace digits
