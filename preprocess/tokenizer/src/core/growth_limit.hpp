// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <millrace/error.hpp>

namespace millrace::tokenizer::detail {

/// Thrown for a text that cannot be encoded. Normalizers and pre-tokenizers cannot return a fault,
/// so they throw this. composed_tokenizer turns it into an encode_fault.
class unencodable_text : public error {
 public:
  explicit unencodable_text(const std::string& problem) : error(problem) {}
};

/// Limits the output that the steps of a tokenizer produce for one text. The limit is 32 times the
/// size of the text in bytes plus 1 MiB (2^20), counted in bytes or in ids.
///
/// Without this limit, a few steps could fill all memory if each of them doubles the text. Real
/// tokenizers stay far below the limit: NFKC turns one byte into at most 11 bytes, and then
/// ByteLevel at most doubles the size. For one thread.
class growth_limit {
 public:
  static constexpr std::size_t most_times = 32;
  static constexpr std::size_t spare_bytes = std::size_t{1} << 20;
  /// A step that writes a few bytes at a time need not call expect() for each write. One call for
  /// every `unchecked_bytes` bytes that it reads or writes is enough.
  static constexpr std::size_t unchecked_bytes = 4096;

  /// @param text_bytes  size of the text before the first step
  /// @param interrupt_check  called when a step begins, and for each MiB that a step writes. If it
  ///                         throws, the step ends. May be null or empty. Must outlive this object.
  explicit growth_limit(std::size_t text_bytes,
                        const std::function<void()>* interrupt_check = nullptr)
      : text_bytes_(text_bytes),
        most_bytes_(most_times * text_bytes + spare_bytes),
        interrupt_check_(interrupt_check) {}

  static growth_limit none() { return growth_limit(SIZE_MAX / most_times / 2); }

  /// Starts a step.
  ///
  /// @param step  name of the step for messages, e.g. "NFKC"; must outlive the step
  void begin(std::string_view step) {
    step_ = step;
    check_limit(0, unit::bytes);
  }

  /// Reports that the output of the current step has grown to `made` bytes. Call it before these
  /// bytes are written, or soon after.
  ///
  /// @throws unencodable_text  `made` exceeds the limit
  void expect(std::size_t made) {
    if (made >= next_check_) check_limit(made, unit::bytes);
  }

  /// Reports that all steps together have produced `made` ids from the text so far.
  ///
  /// @throws unencodable_text  `made` exceeds the limit
  void expect_ids(std::size_t made) {
    if (made >= next_check_) check_limit(made, unit::ids);
  }

 private:
  enum class unit : std::uint8_t { bytes, ids };

  [[noreturn]] void refuse(unit of) const {
    const std::string most = std::to_string(most_bytes_);
    const std::string text = " of a text of " + std::to_string(text_bytes_) + " bytes; ";
    if (of == unit::ids) {
      throw unencodable_text("the tokenizer makes more than " + most + " ids" + text +
                             "it may make " + std::to_string(most_times) +
                             " ids per byte plus 2^20");
    }
    throw unencodable_text("the tokenizer's " + std::string(step_) + " makes more than " + most +
                           " bytes" + text + "a text may grow to " + std::to_string(most_times) +
                           " times its size plus 1 MiB");
  }

  void check_limit(std::size_t made, unit of) {
    if (made > most_bytes_) refuse(of);
    if (interrupt_check_ != nullptr && *interrupt_check_) (*interrupt_check_)();
    next_check_ = std::min(made + spare_bytes, most_bytes_ + 1);
  }

  std::size_t text_bytes_;
  std::size_t most_bytes_;
  std::size_t next_check_ = 0;
  std::string_view step_ = "encoder";
  const std::function<void()>* interrupt_check_;
};

}  // namespace millrace::tokenizer::detail
