// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include <millrace/loader/detail/telemetry/telemetry.hpp>

namespace millrace::test {

/// Durations of the parts of a micro-batch, in nanoseconds.
struct simulated_times {
  std::int64_t plan = 0;
  std::int64_t storage = 0;
  std::int64_t gather = 0;
  std::int64_t copy = 0;
  std::int64_t compute = 0;  ///< duration of the caller's work on the batch
};

/// Simulates a loader and its caller, with a simulated clock. A producer makes micro-batches one at
/// a time in `slots` slots. The caller works on one batch after another and keeps the slots of
/// these batches. When it holds `held` batches, it releases all of them. Everything is reported to
/// `t`, in order of time.
///
/// @param copies_apart  true if a separate engine makes copies while the producer continues
inline void simulate_pipeline(loader::telemetry& t, std::int64_t batches, std::int64_t slots,
                              std::int64_t held, bool copies_apart,
                              const std::function<simulated_times(std::int64_t)>& times_of) {
  std::deque<std::int64_t> freed(static_cast<std::size_t>(slots), 0);  // when each slot is free
  std::vector<std::int64_t> ready_at;
  std::int64_t producer = 0;
  std::int64_t engine = 0;
  std::int64_t caller = 0;
  std::int64_t holds = 0;
  std::int64_t made = 0;

  // The producer runs while slots are free. Only the caller frees slots, so the producer makes all
  // its reports before the caller's next report.
  const auto produce = [&] {
    while (made < batches && !freed.empty()) {
      const simulated_times times = times_of(made);
      const std::int64_t begin = std::max(producer, freed.front());
      freed.pop_front();
      t.producer().slot_wait(made, producer, begin);
      std::int64_t at = begin;
      const auto stage = [&](loader::loader_stage which, std::int64_t ns) {
        t.producer().stage(which, made, at, at + ns);
        at += ns;
      };
      stage(loader::loader_stage::plan, times.plan);
      if (times.storage > 0) stage(loader::loader_stage::storage, times.storage);
      stage(loader::loader_stage::gather, times.gather);
      if (copies_apart) {
        producer = at;
        at = std::max(at, engine);
        stage(loader::loader_stage::copy, times.copy);
        engine = at;
      } else {
        stage(loader::loader_stage::copy, times.copy);
        producer = at;
      }
      ready_at.push_back(at);
      ++made;
    }
  };

  // The caller requests the first batch only when the ring is full, as after a long start.
  produce();
  caller = ready_at.back();
  for (std::int64_t m = 0; m < batches; ++m) {
    produce();
    const auto first = ready_at.begin() + m;
    const auto ready =
        std::count_if(first, ready_at.end(), [&](std::int64_t at) { return at <= caller; });
    const std::int64_t got = std::max(caller, *first);
    t.wait(m, caller, got, ready);
    caller = got + times_of(m).compute;
    if (++holds < held) continue;
    for (; holds > 0; --holds) freed.push_back(caller);
  }
}

}  // namespace millrace::test
