// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <millrace/chat/chat_template.hpp>
#include <millrace/chat/value.hpp>

/// The input is a template. It is refused, fails, or renders, and stays within its limits.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace::chat;
  constexpr std::string_view messages =
      R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "日本 <b>"},)"
      R"( {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f",)"
      R"( "arguments": {"x": [1, 2.5, null, true]}}}]}])";
  constexpr render_limits limits{
      .steps = 20'000, .output_bytes = 100'000, .memory_bytes = std::size_t{4} << 20};
  try {
    const auto parsed =
        chat_template::parse({reinterpret_cast<const char*>(data), size}, "fuzz.jinja");
    value_pool pool;
    const conversation from{.messages = parse_json(messages, pool)};
    const rendered out = parsed.render(make_variables(from, {}, pool), limits);
    if (out.text.size() > limits.output_bytes) std::abort();
  } catch (const template_error&) {  // as it should be
  }
  return 0;
}
