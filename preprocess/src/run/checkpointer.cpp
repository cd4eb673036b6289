// SPDX-License-Identifier: Apache-2.0
#include "run/checkpointer.hpp"

namespace millrace::preprocess {
namespace {

double make_safe(committer& committer, journal& journal, const run_progress& state) {
  const auto start = std::chrono::steady_clock::now();
  committer.sync();
  journal.write(state);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

bool checkpointer::is_running() const {
  return running_.valid() && running_.wait_for(duration::zero()) != std::future_status::ready;
}

void checkpointer::collect() {
  if (running_.valid()) busy_seconds_ += running_.get();
}

void checkpointer::update() {
  if (clock::now() - last_ < period_ || is_running()) return;
  collect();
  last_ = clock::now();
  // Copy the state, because later commits change the state while the outputs are synced. The
  // outputs may then contain bytes that the copied state does not count. That is harmless: a
  // resumed run drops these bytes.
  running_ = std::async(std::launch::async, [this, state = committer_.state()] {
    return preprocess::make_safe(committer_, journal_, state);
  });
  if (period_ == duration::zero()) collect();
}

void checkpointer::make_safe() {
  collect();
  last_ = clock::now();
  busy_seconds_ += preprocess::make_safe(committer_, journal_, committer_.state());
}

}  // namespace millrace::preprocess
