// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include <millrace/detail/export.hpp>

// Example:
//
//     try {
//       millrace::dataset::indexed_dataset data("web_text_document");
//     } catch (const millrace::io_error& e) {
//       std::cerr << e.path() << " cannot be read, errno " << e.code() << '\n';
//     } catch (const millrace::error& e) {  // all errors of this library
//       std::cerr << e.what() << '\n';
//     }

/// The three kinds of failure that end an operation. All derive from `millrace::error`, so a single
/// handler in a program's `main` can catch them. Each `what()` is a complete sentence on one line,
/// unless a name in it contains line ends.
namespace millrace {

class MILLRACE_EXPORT error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A system call failed.
class MILLRACE_EXPORT io_error : public error {
 public:
  /// @param call   the system call that failed, e.g. "mmap"; a string literal, because only the
  ///               pointer is kept
  /// @param code   errno of the failed call
  io_error(std::filesystem::path path, const char* call, int code)
      : error(path.string() + ": " + call + ": " + std::generic_category().message(code)),
        path_(std::move(path)),
        call_(call),
        code_(code) {}

  /// @param offset  byte of the file at which the call failed, if known
  /// @param more    text that ends the message, e.g. what was expected or what the user should do
  io_error(std::filesystem::path path, const char* call, int code,
           std::optional<std::uint64_t> offset, const std::string& more)
      : error(path.string() + ": " + call + ": " + std::generic_category().message(code) +
              (offset ? " (at byte " + std::to_string(*offset) + ")" : "") +
              (more.empty() ? "" : ": " + more)),
        path_(std::move(path)),
        call_(call),
        code_(code),
        offset_(offset) {}

  const std::filesystem::path& path() const noexcept { return path_; }
  const char* call() const noexcept { return call_; }
  int code() const noexcept { return code_; }
  std::optional<std::uint64_t> offset() const noexcept { return offset_; }

 private:
  std::filesystem::path path_;
  const char* call_;
  int code_;
  std::optional<std::uint64_t> offset_;
};

/// Bytes contradict the specification of their format.
///
/// Codecs see bytes, not files, so they throw this error without a path. The code that opened the
/// file catches it and throws `in(path)`, the same error with the path.
class MILLRACE_EXPORT format_error : public error {
 public:
  /// @param offset  byte of the file (or span) at which the bytes contradict the specification
  format_error(std::uint64_t offset, const std::string& problem)
      : format_error({}, offset, problem) {}

  format_error(std::filesystem::path path, std::uint64_t offset, const std::string& problem)
      : error((path.empty() ? std::string() : path.string() + ": ") + problem + " (at byte " +
              std::to_string(offset) + ")"),
        path_(std::move(path)),
        problem_(problem),
        offset_(offset) {}

  /// The same error, with the path of the file.
  format_error in(const std::filesystem::path& path) const { return {path, offset_, problem_}; }

  const std::filesystem::path& path() const noexcept { return path_; }
  const std::string& problem() const noexcept { return problem_; }
  std::uint64_t offset() const noexcept { return offset_; }

 private:
  std::filesystem::path path_;
  std::string problem_;
  std::uint64_t offset_;
};

/// An option, or a combination of options, cannot be honored. The message names the option, the
/// value found and the values allowed.
class MILLRACE_EXPORT config_error : public error {
 public:
  using error::error;
};

}  // namespace millrace
