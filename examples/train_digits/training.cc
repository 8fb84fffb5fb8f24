// SPDX-License-Identifier: Apache-2.0
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

// The network that is trained, its gradient, and how gradients are summed.
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

// Where the training stands: what is committed of it beside the network. The same on all ranks.
struct Progress {
  int64_t epoch = 1;
  int64_t at = 0;              // images of this epoch that are done
  double loss = 0;             // of these
  std::vector<double> losses;  // of each epoch
};

struct Course {
  const Digits& digits;
  const TrainingOptions& options;
  const std::function<void(const EpochReport&)>& report;
  std::function<void()> commit;  // null: nobody does
};

// The losses of this rank since the last time are added up over all ranks.
void AddLosses(double* mine, Progress* progress) {
  hvd::allreduce(mine, 1, hvd::Op::kSum, "epoch.loss");
  progress->loss += *mine;
  *mine = 0;
}

// Goes through the rest of the training images in this epoch's order.
void TrainEpoch(const Course& course, Progress* progress, Model* model) {
  const std::vector<Image>& images = course.digits.train;
  const TrainingOptions& options = course.options;
  const std::vector<uint32_t> order =
      Shuffled(images.size(), options.seed + static_cast<uint64_t>(progress->epoch));
  double loss = 0;
  for (int batches = 1; static_cast<size_t>(progress->at) < order.size(); ++batches) {
    const auto at = static_cast<size_t>(progress->at);
    const size_t batch = std::min(options.batch, order.size() - at);
    const Share share(batch);
    std::vector<const Image*> mine;
    for (size_t i = share.begin; i < share.end; ++i) mine.push_back(&images[order[at + i]]);
    loss += Step(mine, batch, options.learning_rate, model);
    progress->at += static_cast<int64_t>(batch);
    if (course.commit == nullptr || batches % options.commit_every != 0) continue;
    AddLosses(&loss, progress);
    course.commit();
  }
  AddLosses(&loss, progress);
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

// From where `progress` stands to the end.
void TrainOn(const Course& course, Progress* progress, Model* model) {
  const size_t images = course.digits.train.size();
  while (progress->epoch <= course.options.epochs) {
    const auto begin = std::chrono::steady_clock::now();
    const auto from = static_cast<size_t>(progress->at);
    TrainEpoch(course, progress, model);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EpochReport done;
    done.epoch = static_cast<int>(progress->epoch);
    done.loss = progress->loss / static_cast<double>(images);
    done.samples_per_second = static_cast<double>(images - from) / took.count();
    done.test_accuracy = Accuracy(model->network, course.digits.test);
    course.report(done);
    progress->losses[static_cast<size_t>(done.epoch - 1)] = done.loss;
    ++progress->epoch;
    progress->at = 0;
    progress->loss = 0;
    if (course.commit != nullptr) course.commit();
  }
}

// Adds all that a rank that comes later, or goes back, needs to go on.
void AddTo(hvd::State* state, Network* network, Progress* progress) {
  state->add("hidden.weight", network->hidden.weight);
  state->add("hidden.bias", network->hidden.bias);
  state->add("output.weight", network->output.weight);
  state->add("output.bias", network->output.bias);
  state->add("epoch", &progress->epoch, 1);
  state->add("at", &progress->at, 1);
  state->add("loss", &progress->loss, 1);
  state->add("losses", progress->losses);
}

}  // namespace

TrainingResult Train(const Digits& digits, const TrainingOptions& options,
                     const SumsFactory& make_sums,
                     const std::function<void(const EpochReport&)>& report) {
  Model model{Network(options.hidden_units), Network(options.hidden_units), nullptr};
  Progress progress;
  progress.losses.resize(static_cast<size_t>(options.epochs));
  Course course{digits, options, report, nullptr};
  TrainingResult result;
  if (hvd::rank() == 0) FillRandomly(&model.network, options.seed);
  const auto train = [&] {
    const std::unique_ptr<Sums> sums = make_sums();
    model.sums = sums.get();
    TrainOn(course, &progress, &model);
    result.test_accuracy = Accuracy(model.network, digits.test);
  };
  if (options.elastic) {
    hvd::State state;
    AddTo(&state, &model.network, &progress);
    course.commit = [&state] { state.commit(); };
    result.finished = hvd::elastic::run(state, train);
  } else {
    BroadcastParameters(&model.network);
    train();
  }
  result.losses = progress.losses;
  return result;
}

}  // namespace digits
