// SPDX-License-Identifier: Apache-2.0
#include "run/fault_point.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

namespace millrace::preprocess {
namespace {

struct kill_order {
  std::string name;  // empty: any
  long step = 0;     // 0: none
};

const kill_order& order() {
  static const kill_order given = [] {
    kill_order made;
    const char* text = std::getenv("MILLRACE_TEST_KILL_AT");
    if (text == nullptr) return made;
    const std::string_view whole = text;
    const std::size_t colon = whole.find(':');
    if (colon != whole.npos) made.name = whole.substr(0, colon);
    made.step = std::atol(text + (colon == whole.npos ? 0 : colon + 1));
    return made;
  }();
  return given;
}

}  // namespace

void fault_point(const char* name) noexcept {
  const kill_order& kill = order();
  if (kill.step == 0 || (!kill.name.empty() && kill.name != name)) return;
  static std::atomic<long> steps{0};
  if (++steps == kill.step) (void)std::raise(SIGKILL);
}

}  // namespace millrace::preprocess
