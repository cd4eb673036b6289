// SPDX-License-Identifier: Apache-2.0
#include "mpi/task_phase.hpp"

#include <chrono>
#include <deque>
#include <exception>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "run/pipeline.hpp"

namespace millrace::preprocess {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds look_period{5};
constexpr std::chrono::milliseconds report_period{250};
constexpr int most_notes = 10;

// An order is a message from rank 0 to a rank. It is the index of the task to do, or one of these
// values.
constexpr std::int64_t order_leave = -1;  // the last order that a rank gets
constexpr std::int64_t order_stop = -2;   // the job ends; stop the current task

/// A message to rank 0.
struct rank_report {
  progress_state state;        // progress of this rank so far
  bool wants_order = false;    // the rank is idle
  bool is_in_trouble = false;  // the rank failed or got a stop signal, so the job must end
};

/// The coordinator on rank 0. It assigns tasks and adds up the progress of all ranks.
class task_desk {
 public:
  task_desk(rank_group& ranks, std::int64_t tasks)
      : ranks_(ranks),
        tasks_(tasks),
        states_(static_cast<std::size_t>(ranks.size())),
        left_(static_cast<std::size_t>(ranks.size())) {}

  void take(int from, const rank_report& report) {
    states_[static_cast<std::size_t>(from)] = report.state;
    if (report.is_in_trouble) stop();
    if (!report.wants_order) return;
    if (stopping_ || next_ == tasks_) {
      left_[static_cast<std::size_t>(from)] = true;
      post(from, order_leave);
    } else {
      post(from, next_++);
    }
  }
  void stop() {
    if (std::exchange(stopping_, true)) return;
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      if (!left_[static_cast<std::size_t>(rank)]) post(rank, order_stop);
    }
  }
  void serve() {
    int sender = 0;
    while (const auto report = ranks_.receive<rank_report>(-1, &sender)) take(sender, *report);
  }

  bool all_left() const { return std::ranges::find(left_, false) == left_.end(); }
  progress_state together() const {
    progress_state sum;
    for (const progress_state& state : states_) sum += state;
    return sum;
  }
  std::optional<std::int64_t> own_order() {
    if (own_.empty()) return std::nullopt;
    const std::int64_t order = own_.front();
    own_.pop_front();
    return order;
  }

 private:
  void post(int to, std::int64_t order) {
    if (to == ranks_.rank()) {
      own_.push_back(order);
    } else {
      ranks_.send(to, order);
    }
  }

  rank_group& ranks_;
  std::int64_t tasks_;
  std::int64_t next_ = 0;
  bool stopping_ = false;
  std::vector<progress_state> states_;
  std::vector<bool> left_;
  std::deque<std::int64_t> own_;
};

/// Does tasks on one rank. Only the main thread calls MPI. It calls MPI again and again, because
/// some MPI transports make progress only during such calls.
class task_taker {
 public:
  task_taker(rank_group& ranks, const task_phase_options& options)
      : ranks_(ranks), options_(options), progress_(ranks.is_first() ? most_notes : 0) {
    if (ranks.is_first()) desk_.emplace(ranks, options.tasks);
  }

  void run() {
    bool left = false;
    bool waiting = false;  // this rank has asked for an order and has not got it yet
    while (!left || (desk_ && !desk_->all_left())) {
      if (*options_.signal != 0) be_in_trouble();
      collect();
      if (!running_.valid() && !waiting && !left) {
        waiting = true;
        report(true);
      } else if (clock::now() - reported_ > report_period && !left) {
        report(false);
      }
      while (const auto order = next_order()) {
        if (*order == order_stop) {
          stop_ = 1;
        } else if (*order == order_leave) {
          left = true;
        } else {
          begin(*order);
        }
        if (*order != order_stop) waiting = false;
      }
      if (clock::now() - watched_ > report_period) watch();
      pause();
    }
    watch();  // the last call: every rank reported its final state when it last asked for work
    if (failure_) std::rethrow_exception(failure_);
    if (stop_ != 0) throw stopped("stopped; the finished work is safe; pass --resume to continue");
  }

 private:
  // Begins a task on a separate thread. If that thread cannot be started, this rank must still
  // report the failure to the other ranks.
  void begin(std::int64_t task) {
    try {
      running_ = std::async(std::launch::async,
                            [this, task] { return options_.work(task, progress_, stop_); });
    } catch (...) {
      fail();
    }
  }

  void collect() {
    if (!running_.valid() ||
        running_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      return;
    }
    try {
      done_ += progress_of(running_.get());
    } catch (const stopped&) {
      be_in_trouble();
    } catch (...) {
      fail();
    }
    progress_.update({});
  }

  // Records the current exception. Call this in an exception handler.
  void fail() {
    if (!failure_) failure_ = std::current_exception();
    be_in_trouble();
  }

  void be_in_trouble() {
    stop_ = 1;
    if (!std::exchange(in_trouble_, true)) report(false);
  }

  void report(bool wants_order) {
    rank_report now{.state = done_, .wants_order = wants_order, .is_in_trouble = in_trouble_};
    now.state += progress_.state();
    if (desk_) {
      desk_->take(0, now);
    } else {
      ranks_.send(0, now);
    }
    reported_ = clock::now();
  }

  std::optional<std::int64_t> next_order() {
    if (!desk_) return ranks_.receive<std::int64_t>(0);
    desk_->serve();
    return desk_->own_order();
  }

  void watch() {
    watched_ = clock::now();
    if (!desk_) return;
    try {
      options_.watch(desk_->together());
    } catch (...) {
      fail();
    }
  }

  void pause() {
    if (running_.valid()) {
      (void)running_.wait_for(look_period);
    } else {
      std::this_thread::sleep_for(look_period);
    }
  }

  rank_group& ranks_;
  const task_phase_options& options_;
  std::optional<task_desk> desk_;  // only on rank 0
  std::atomic<int> stop_{0};
  task_progress progress_;
  progress_state done_;  // total of the tasks that this rank has finished
  bool in_trouble_ = false;
  std::exception_ptr failure_;
  clock::time_point reported_ = clock::now();
  clock::time_point watched_ = clock::now();
  std::future<run_summary> running_;  // last member: its thread uses the others
};

}  // namespace

void do_tasks(rank_group& ranks, const task_phase_options& options) {
  task_taker(ranks, options).run();
}

}  // namespace millrace::preprocess
