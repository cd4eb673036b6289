// SPDX-License-Identifier: Apache-2.0
#include "regex/pcre2_pattern.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <millrace/io/detail/unique_handle.hpp>

#include "regex/pattern_tree.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr std::uint64_t least_steps = 10'000'000;
constexpr std::uint64_t steps_a_byte = 50;
constexpr std::size_t most_memory_bytes = std::size_t{256} << 20;
constexpr std::size_t first_stack_bytes = std::size_t{1} << 20;
constexpr std::uint32_t most_groups_in_groups = 1000;  // up to 3 nested per original group

// Disables three optimizations of PCRE2. Two of them have bugs in PCRE2 10.42, and the third is
// similar. With machine code, the start optimization finds no match of "(?>[ab]+?[^a]){2}" in
// "ab-ab". Auto-possessification makes some repeats possessive that must not be:
// "[^x]?(?:x(?:ac)?)?+[^y]{2,}" then misses the "ab" of "aby". Patterns of pre-tokenizers match
// everywhere in a text, so these optimizations would gain nothing anyway.
constexpr std::uint32_t without_optimizations =
    PCRE2_NO_START_OPTIMIZE | PCRE2_NO_AUTO_POSSESS | PCRE2_NO_DOTSTAR_ANCHOR;

using code_handle = io::unique_handle<pcre2_code*, nullptr, pcre2_code_free>;
using compile_context_handle =
    io::unique_handle<pcre2_compile_context*, nullptr, pcre2_compile_context_free>;
using match_data_handle = io::unique_handle<pcre2_match_data*, nullptr, pcre2_match_data_free>;
using match_context_handle =
    io::unique_handle<pcre2_match_context*, nullptr, pcre2_match_context_free>;
using jit_stack_handle = io::unique_handle<pcre2_jit_stack*, nullptr, pcre2_jit_stack_free>;

template <class Handle, class Pointer>
Handle owned(Pointer made) {
  if (made == nullptr) throw std::bad_alloc();
  return Handle(made);
}

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

std::string_view problem_of(int error) noexcept {
  switch (error) {
    case PCRE2_ERROR_MATCHLIMIT:
    case PCRE2_ERROR_DEPTHLIMIT:
      return "there are too many ways to match it";
    case PCRE2_ERROR_JIT_STACKLIMIT:
    case PCRE2_ERROR_HEAPLIMIT:
      return "to match it takes more than 256 MiB of memory";
    case PCRE2_ERROR_NOMEMORY:
      return "there is no memory to match it";
    default:
      return "PCRE2 fails";
  }
}

}  // namespace

struct pcre2_memory::parts {
  match_data_handle match = owned<match_data_handle>(pcre2_match_data_create(1, nullptr));
  match_context_handle limits = owned<match_context_handle>(pcre2_match_context_create(nullptr));
  jit_stack_handle stack;         // created when the stack of the thread is too small
  std::size_t subject_bytes = 0;  // subject size for which `limits` are set

  parts() {
    pcre2_set_heap_limit(limits.get(), most_memory_bytes / 1024);
    allow_steps_for(0);
  }

  void allow_steps_for(std::size_t bytes) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    const auto steps =
        static_cast<std::uint32_t>(std::min(least_steps + steps_a_byte * bytes, most));
    pcre2_set_match_limit(limits.get(), steps);
    pcre2_set_depth_limit(limits.get(), steps);
    subject_bytes = bytes;
  }
};
pcre2_memory::pcre2_memory() noexcept = default;
pcre2_memory::~pcre2_memory() = default;

struct pcre2_pattern::compiled {
  code_handle code;
  decltype(&pcre2_match) match;  // runs the machine code, or interprets the pattern
};
pcre2_pattern::~pcre2_pattern() = default;

pcre2_pattern::pcre2_pattern(const std::string& source, engine how, alphabet bytes) {
  const auto context = owned<compile_context_handle>(pcre2_compile_context_create(nullptr));
  pcre2_set_parens_nest_limit(context.get(), most_groups_in_groups);
  int error = 0;
  std::size_t offset = 0;
  const std::uint32_t options =
      without_optimizations |
      (bytes == alphabet::utf8
           ? PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C
           : PCRE2_NEVER_UTF | PCRE2_NEVER_UCP);
  code_handle code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                                 options, &error, &offset, context.get()));
  if (!code) {
    throw pattern_error(
        "PCRE2 rejected the regular expression: " + message_of(error) +
        (bytes == alphabet::utf8 ? " (at byte " + std::to_string(offset) + ")" : ""));
  }
  const bool fast =
      how == engine::fastest && pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE) == 0;
  compiled_ = std::make_unique<const compiled>(
      compiled{std::move(code), fast ? pcre2_jit_match : pcre2_match});
}

pcre2_pattern::result pcre2_pattern::find(std::string_view subject, std::size_t from,
                                          pcre2_memory& memory, bool not_empty) const {
  if (!memory.parts_) memory.parts_ = std::make_unique<pcre2_memory::parts>();
  pcre2_memory::parts& parts = *memory.parts_;
  if (parts.subject_bytes != subject.size()) parts.allow_steps_for(subject.size());
  const auto match = [&] {
    return compiled_->match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()),
                            subject.size(), from, not_empty ? PCRE2_NOTEMPTY_ATSTART : 0U,
                            parts.match.get(), parts.limits.get());
  };
  int found = match();
  if (found == PCRE2_ERROR_JIT_STACKLIMIT && !parts.stack) {
    parts.stack = owned<jit_stack_handle>(
        pcre2_jit_stack_create(first_stack_bytes, most_memory_bytes, nullptr));
    pcre2_jit_stack_assign(parts.limits.get(), nullptr, parts.stack.get());
    found = match();
  }
  using kind = result::kind;
  if (found == PCRE2_ERROR_NOMATCH) return {};
  if (found < 0) return {.what = kind::problem, .problem = problem_of(found)};
  const std::size_t* const places = pcre2_get_ovector_pointer(parts.match.get());
  return {.what = kind::match, .begin = places[0], .end = places[1], .problem = {}};
}

std::string pcre2_version() {
  std::array<char, 64> text{};
  pcre2_config(PCRE2_CONFIG_VERSION, text.data());
  const std::string version(text.data());  // "10.42 2022-12-11"
  return version.substr(0, version.find(' '));
}

}  // namespace millrace::tokenizer::detail
