// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <millrace/command/text.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/json_writer.hpp>

/// The behavior that all programs share: exit codes, error messages on stderr, `--version`.
namespace millrace::command {

inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;
inline constexpr int exit_misuse = 2;
/// For commands whose `exit_failed` is an answer, such as "not found": there is no answer.
inline constexpr int exit_unfinished = 4;

/// The command line is wrong. The program prints a pointer to --help and returns `exit_misuse`.
class usage_error : public error {
 public:
  /// @param usage  the usage line to print; empty: the usage line of the program
  /// @param verb   the verb whose --help explains the usage; empty: the --help of the program
  ///               explains it
  explicit usage_error(const std::string& what, std::string usage = {}, std::string verb = {})
      : error(what), usage_(std::move(usage)), verb_(std::move(verb)) {}
  const std::string& usage() const noexcept { return usage_; }
  const std::string& verb() const noexcept { return verb_; }

 private:
  std::string usage_;
  std::string verb_;
};

/// Writes an answer to stdout and flushes it.
///
/// @throws io_error  the write fails, e.g. with ENOSPC on a full disk or EPIPE for a closed pipe.
inline void answer(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw io_error("stdout", "write", errno);
  }
}

/// Writes a message to stderr. If the write fails (stderr is closed or redirected to a full disk),
/// the message is lost. A lost message must not stop the program or change its exit code.
inline void tell(std::string_view text) noexcept {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

/// Prints the output of `--version`: the version, and the optional parts that this build has.
inline void print_version(std::string_view program, std::string_view optional_parts = "none") {
  answer(fmt::format("{} (millrace) {}\noptional parts: {}\n", program, MILLRACE_VERSION,
                     optional_parts));
}

namespace detail {

/// Ignores two signals that would kill the process, so that the system call fails instead. Opens
/// standard streams that are closed. Otherwise, a file that is opened later could get the
/// descriptor of a closed stream, and messages would be written into that file.
inline void prepare_process() noexcept {
  (void)std::signal(SIGXFSZ, SIG_IGN);  // a write beyond RLIMIT_FSIZE fails with EFBIG
  (void)std::signal(SIGPIPE, SIG_IGN);  // a write that nobody reads fails with EPIPE
  for (const int fd : {0, 1, 2}) {
    // open() takes the lowest free number. This is `fd`, because all lower numbers are open by now.
    // Stdout is opened for reading only, so that writing an answer to it fails instead of losing
    // the answer silently.
    if (::fcntl(fd, F_GETFD) == -1) (void)::open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY);
  }
}

/// An error as a JSON object on one line:
///
///   {"error": {"kind": "io", "message": "a.idx: open: No such file or directory",
///              "file": "a.idx", "call": "open", "errno": 2}}
///
/// `kind` is "usage", "config", "io", "format" or "other". A "format" has `file` and
/// `offset_bytes`, an "io" may have `offset_bytes`.
inline std::string json_of_error(const std::exception& e) {
  const auto* const io = dynamic_cast<const io_error*>(&e);
  const auto* const format = dynamic_cast<const format_error*>(&e);
  const bool usage = dynamic_cast<const usage_error*>(&e) != nullptr;
  const bool config = dynamic_cast<const config_error*>(&e) != nullptr;
  formats::json_writer json;
  json.open('{').key("error").open('{').key("kind");
  json.value(usage ? "usage" : config ? "config" : io ? "io" : format ? "format" : "other");
  json.key("message").value(std::string_view(e.what()));
  if (io != nullptr) {
    json.key("file").value(io->path().native()).key("call").value(std::string_view(io->call()));
    json.key("errno").value(io->code());
    if (io->offset()) json.key("offset_bytes").value(*io->offset());
  }
  if (format != nullptr) {
    json.key("file").value(format->path().native()).key("offset_bytes").value(format->offset());
  }
  return json.close('}').close('}').text() + '\n';
}

/// Prints an error as JSON on stdout. If that fails, the message on stderr has to do.
inline void tell_json(const std::exception& e) noexcept try {
  const std::string text = json_of_error(e);
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
  (void)std::fflush(stdout);
} catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): as above
}

}  // namespace detail

/// Prints an error on stderr as one line and, if `json`, also on stdout (`json_of_error`).
inline void tell_error(std::string_view program, const std::exception& e, bool json) {
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) {
    tell(program);
    tell(": out of memory\n");
    return;
  }
  if (json) detail::tell_json(e);
  tell(fmt::format("{}: {}\n", program, one_line(e.what())));
}

/// Runs the body of `main` and returns its exit code. If the body throws, prints the error on
/// stderr as one line and returns `exit_failed`, or `exit_misuse` for a usage_error. If `--json` is
/// one of the words of the command line, also prints the error on stdout (`json_of_error`).
///
/// @param usage  the usage line to print if a usage_error has no usage line of its own
template <class Body>
int run_command(std::string_view program, std::string_view usage, int argc, char** argv,
                Body&& body) noexcept {
  detail::prepare_process();
  const bool json = std::any_of(
      argv, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
  try {
    return body();
  } catch (const usage_error& e) {
    if (json) detail::tell_json(e);
    tell(fmt::format("{0}: {1}\n{2}\nTry '{0}{3}{4} --help'.\n", program, one_line(e.what()),
                     e.usage().empty() ? usage : e.usage(), e.verb().empty() ? "" : " ", e.verb()));
    return exit_misuse;
  } catch (const std::exception& e) {
    tell_error(program, e, json);
  }
  return exit_failed;
}

}  // namespace millrace::command
