// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string_view>

#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>

/// If a state is accepted, writing it and reading it again must not change it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  try {
    const auto state = dataset::parse_state({reinterpret_cast<const char*>(data), size});
    const std::string text = dataset::write_state(state);
    if (dataset::write_state(dataset::parse_state(text)) != text) std::abort();
  } catch (const format_error& e) {
    if (e.offset() > size) std::abort();
  } catch (const config_error&) {
  }
  return 0;
}
