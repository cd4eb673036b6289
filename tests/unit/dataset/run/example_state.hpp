// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>

namespace millrace::test {

/// A state in which nearly every option differs from its default.
inline dataset::run_state example_state() {
  using namespace dataset;
  run_state s;
  s.seed = 4321;
  s.seq_len = 4096;
  s.packing = "best_fit";
  s.pad_documents_to = 16;
  s.last_token_as_label = true;
  s.split = "969, 30, 1";
  s.split_part = "valid";
  s.samples = {1000, -1, 0};
  s.surplus = 0.1;
  s.weighted = false;
  s.blend_rounding = "fused";
  s.extra_token = false;
  s.drop_last_partial_sequence = false;
  s.global_batch = 512;
  s.rampup_batch = {32, 32, 1000000};
  s.tokenizer = "9f2c";
  s.data = {{"web", 0.7, 100, 10, 9, 200, 300, "9f2c"},
            {"code \"C\"", 0.3, 50, 5, 5, 100, 150, ""}};
  s.schedule = {{0, {0}, {1.0}}, {100, {0, 1}, {0.1, 1.0 / 3}}};
  s.edits = {{.first = 1000000, .last = 1000512, .why = "loss spike at step 1953"},
             {.kind = edit_kind::replay,
              .unit = edit_unit::steps,
              .first = 1,
              .last = 2,
              .at = 3,
              .since = 7,
              .why = "again"},
             {.kind = edit_kind::block,
              .unit = edit_unit::documents,
              .first = 4,
              .last = 5,
              .source = "web",
              .why = "leaked"}};
  s.consumed_samples = 1048576;
  return s;
}

/// Returns the message of the error that `act` throws, or an empty text.
template <class Error = config_error>
std::string fault(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace millrace::test
