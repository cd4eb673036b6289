// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/loader/detail/telemetry/duration_histogram.hpp>

namespace millrace::loader {

/// A source of a blend: its name, and its relative weight.
struct mixture_source {
  std::string name;
  double weight = 1;
};

/// The number of samples that a source has provided, and its target.
struct mixture_share {
  std::string name;
  std::int64_t samples = 0;
  double target_samples = 0;  ///< expected from the weights at the time of each sample
};

/// Counts the samples of each source, and computes each source's target from the weights. The
/// weights may change during the run. One thread at a time may call `served` and `aim`; any thread
/// may call `shares`.
class mixture {
 public:
  /// @throws config_error  a weight is negative or not finite, or all weights are 0
  explicit mixture(std::vector<mixture_source> sources)
      : sources_(std::move(sources)),
        served_(std::make_unique<counter[]>(sources_.size())),
        before_(std::make_unique<std::atomic<double>[]>(sources_.size())),
        share_(std::make_unique<std::atomic<double>[]>(sources_.size())) {
    std::vector<double> weights;
    for (const mixture_source& each : sources_) weights.push_back(each.weight);
    if (!weights.empty()) aim(weights);
  }

  std::size_t size() const noexcept { return sources_.size(); }

  void served(std::size_t source, std::int64_t samples) noexcept {
    assert(source < size());
    served_[source].add(samples);
    all_.add(samples);
  }

  /// Sets the weights, one per source, for the next sample and all later samples. If another thread
  /// makes a report at the same time, that report may mix old and new targets.
  ///
  /// @throws config_error  see the constructor
  void aim(std::span<const double> weights) {
    assert(weights.size() == size());
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (!(weights[i] >= 0) || !std::isfinite(weights[i])) {
        throw config_error("the weight of " + sources_[i].name + " is " +
                           std::to_string(weights[i]) + ", expected 0 or more");
      }
      sum += weights[i];
    }
    if (!(sum > 0)) throw config_error("all weights of a mixture are 0, expected one above");
    for (std::size_t i = 0; i < size(); ++i) {
      before_[i].store(target_of(i), std::memory_order_relaxed);
      share_[i].store(weights[i] / sum, std::memory_order_relaxed);
    }
    aimed_at_.set(all_.value());
  }

  std::vector<mixture_share> shares() const {
    std::vector<mixture_share> result;
    result.reserve(size());
    for (std::size_t i = 0; i < size(); ++i) {
      result.push_back({sources_[i].name, served_[i].value(), target_of(i)});
    }
    return result;
  }

 private:
  double target_of(std::size_t i) const noexcept {
    return before_[i].load(std::memory_order_relaxed) +
           share_[i].load(std::memory_order_relaxed) *
               static_cast<double>(all_.value() - aimed_at_.value());
  }

  std::vector<mixture_source> sources_;
  std::unique_ptr<counter[]> served_;
  std::unique_ptr<std::atomic<double>[]> before_;  // target of each source at aimed_at_
  std::unique_ptr<std::atomic<double>[]> share_;   // share of each source after aimed_at_
  counter all_;
  counter aimed_at_;
};

}  // namespace millrace::loader
