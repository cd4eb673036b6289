// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/telemetry/telemetry.hpp>

#include <cstddef>

#include <millrace/loader/detail/telemetry/mixture.hpp>
#include <millrace/loader/detail/telemetry/producer_log.hpp>
#include <millrace/loader/detail/telemetry/telemetry_report.hpp>

namespace millrace::loader {

MILLRACE_INLINE telemetry_report telemetry::report() const {
  telemetry_report now;
  now.rank = rank_;
  now.batches = batches_.value();
  now.first_wait_ns = first_wait_.value();
  now.elapsed_ns = last_end_.value() - first_end_.value();
  now.waits = waits_.counts();
  for (std::size_t i = 0; i < now.stalls.size(); ++i) {
    now.stalls[i] = {stalls_[i].value(), stall_ns_[i].value()};
  }
  for (const producer_log& each : producers_) {
    for (std::size_t i = 0; i < now.stages.size(); ++i) {
      now.stages[i].add(each.stage_times(i).counts());
    }
    now.slot_waits.add(each.slot_waits().counts());
    now.bytes += each.bytes();
    now.major_faults += each.faults();
  }
  now.slots = slots_;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(slots_); ++i) {
    now.occupancy.push_back(occupancy_[i].value());
  }
  now.mixture = mixture_.shares();
  return now;
}

}  // namespace millrace::loader
