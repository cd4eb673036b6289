// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <utility>

#include <millrace/dataset/run.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/memory/home_process.hpp>
#include <millrace/loader/detail/memory/named_thread.hpp>
#include <millrace/loader/options.hpp>

/// The order of a run provides one part of the run's state. The functions here add the rest.
namespace millrace::loader {

namespace detail {

/// Fills in the sizes of the dataset that `source` refers to.
/// @throws io_error, format_error  the dataset cannot be opened.
MILLRACE_EXPORT void describe_dataset(dataset::state_source& source);

}  // namespace detail

/// Returns the state of a run at its start, without `consumed_samples`. Opens every dataset once.
///
/// The state contains the tokenizer's fingerprint from the `.meta` files. If several tokenizers are
/// allowed, their fingerprints are joined with commas.
///
/// @param state  the order's part of the state (`dataset::run::description`)
/// @param end    end of the order (`dataset::run::end`)
/// @throws io_error, format_error  a dataset cannot be opened, or as `identify_sources`
/// @throws config_error  datasets have different tokenizers, and the options do not allow this
MILLRACE_EXPORT dataset::run_state describe(dataset::run_state state, std::int64_t end,
                                            const loader_options& options);

/// The state of a run at its start, computed on a separate thread. The thread opens all datasets.
/// There may be thousands of datasets, so this work can take long. It must not delay the first
/// batch, and must not wait for the first checkpoint, hours later: damage would be found late, and
/// files may have been replaced by then.
///
/// Thread-safe, except for `throw_failure`.
class run_description {
 public:
  run_description(const dataset::run& run, const loader_options& options)
      : made_(make_at_home<made>(run.description())),
        thread_({.name = "mr-describe"}, [result = made_.get(), end = run.end(), options] {
          std::exception_ptr failure;
          try {
            result->state = describe(std::move(result->state), end, options);
          } catch (...) {
            failure = std::current_exception();
          }
          // This line comes after the `catch` block, which shares ownership of the exception. So
          // `made::failure` becomes the only owner.
          result->failure = std::move(failure);
          result->done.store(true, std::memory_order_release);
          result->done.notify_all();
        }) {}
  run_description(const run_description&) = delete;
  run_description& operator=(const run_description&) = delete;

  /// Waits for the result.
  /// @throws as `describe`, on every call
  /// @throws error  this is a forked process
  const dataset::run_state& get() const {
    home_.require_here("description of a run");
    made_->done.wait(false, std::memory_order_acquire);
    if (made_->failure) std::rethrow_exception(made_->failure);
    return made_->state;
  }

  /// Throws the exception of the thread if the thread has failed. Never waits. Always call it from
  /// the same thread.
  /// @throws as `describe`, once
  void throw_failure() {
    if (told_ || !made_->done.load(std::memory_order_acquire)) return;
    told_ = true;
    if (made_->failure) std::rethrow_exception(made_->failure);
  }

 private:
  /// The result of the thread.
  struct made {
    explicit made(dataset::run_state at_start) : state(std::move(at_start)) {}

    dataset::run_state state;
    std::exception_ptr failure;
    std::atomic<bool> done{false};
  };

  home_process home_;
  owned_at_home<made> made_;
  bool told_ = false;
  named_thread thread_;  // last: it uses the other members
};

}  // namespace millrace::loader
