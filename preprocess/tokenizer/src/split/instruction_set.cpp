// SPDX-License-Identifier: Apache-2.0
#include "split/instruction_set.hpp"

#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

namespace millrace::tokenizer::detail {
namespace {

constexpr std::pair<std::string_view, instruction_set> set_names[] = {
    {"portable", instruction_set::portable},
    {"neon", instruction_set::neon},
    {"avx2", instruction_set::avx2},
    {"avx512", instruction_set::avx512},
};

std::optional<instruction_set> set_named(std::string_view name) noexcept {
  for (const auto& [known, set] : set_names) {
    if (known == name) return set;
  }
  return std::nullopt;
}

instruction_set widest() noexcept {
#if defined(__AARCH64EL__)
  return instruction_set::neon;
#elif defined(__x86_64__)
  const bool bmi_aes = __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                       __builtin_cpu_supports("aes");
#ifdef MILLRACE_EMULATE_VBMI
  const bool vbmi = true;
#else
  const bool vbmi = __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
#endif
  if (bmi_aes && vbmi && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return instruction_set::avx512;
  }
  if (bmi_aes && __builtin_cpu_supports("avx2")) return instruction_set::avx2;
#endif
  return instruction_set::portable;
}

bool asks_for_none(const char* name) noexcept {
  return name == nullptr || *name == '\0';
}

}  // namespace

bool can_run(instruction_set set) noexcept {
  static const instruction_set most = widest();
  return set == instruction_set::portable || set == most ||
         (set == instruction_set::avx2 && most == instruction_set::avx512);
}

instruction_set instruction_set_for(const char* name) noexcept {
  const auto set = asks_for_none(name) ? std::nullopt : set_named(name);
  return set && can_run(*set) ? *set : widest();
}

std::string fault_of_isa(const char* name) {
  if (asks_for_none(name)) return "";
  const auto set = set_named(name);
  if (set && can_run(*set)) return "";
  std::string fault = "MILLRACE_ISA is '";
  fault += name;
  fault += set ? "', which this processor cannot run; it can run" : "', expected one of";
  const char* before = " ";
  for (const auto& [known, each] : set_names) {
    if (!can_run(each)) continue;
    fault += std::exchange(before, ", ");
    fault += known;
  }
  return fault;
}

const char* isa_variable() noexcept {
  return std::getenv("MILLRACE_ISA");  // NOLINT(concurrency-mt-unsafe)
}

instruction_set best_instruction_set() noexcept {
  static const instruction_set best = instruction_set_for(isa_variable());
  return best;
}

}  // namespace millrace::tokenizer::detail
