// SPDX-License-Identifier: Apache-2.0
#include <millrace/command/run_command.hpp>

#include <array>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include <millrace/error.hpp>

namespace millrace::command {
namespace {

struct outcome {
  int code;
  std::string out;
  std::string err;
};

/// Runs a command whose body throws `error`.
template <class Error>
outcome failed(const Error& error, bool json) {
  std::array<char*, 3> words = {const_cast<char*>("program"), const_cast<char*>("x"),
                                const_cast<char*>(json ? "--json" : "--json-keys")};
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = run_command("program", "usage: program", static_cast<int>(words.size()),
                               words.data(), [&]() -> int { throw error; });
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(RunCommand, PrintsErrorsAsJsonIfAsked) {
  const io_error io("a \"b\"", "open", ENOENT);
  EXPECT_EQ(failed(io, true).out,
            R"({"error": {"kind": "io", "message": "a \"b\": open: No such file or directory", )"
            R"("file": "a \"b\"", "call": "open", "errno": 2}})"
            "\n");
  EXPECT_EQ(failed(io_error("a", "pread", EIO, 12, "read it again"), true).out,
            R"({"error": {"kind": "io", "message": "a: pread: Input/output error (at byte 12): )"
            R"(read it again", "file": "a", "call": "pread", "errno": 5, "offset_bytes": 12}})"
            "\n");
  EXPECT_EQ(failed(format_error("a.idx", 34, "it is short"), true).out,
            R"-({"error": {"kind": "format", "message": "a.idx: it is short (at byte 34)", )-"
            R"("file": "a.idx", "offset_bytes": 34}})"
            "\n");
  EXPECT_EQ(failed(config_error("x is 3"), true).out,
            R"({"error": {"kind": "config", "message": "x is 3"}})"
            "\n");
  EXPECT_EQ(failed(usage_error("no flag"), true).out,
            R"({"error": {"kind": "usage", "message": "no flag"}})"
            "\n");
  EXPECT_EQ(failed(std::runtime_error("a\nb"), true).out,
            R"({"error": {"kind": "other", "message": "a\nb"}})"
            "\n");
}

TEST(RunCommand, PrintsErrorsOnStderrInAnyCase) {
  for (const bool json : {false, true}) {
    const outcome config = failed(config_error("x is 3"), json);
    EXPECT_EQ(config.code, exit_failed);
    EXPECT_EQ(config.err, "program: x is 3\n");
    const outcome usage = failed(usage_error("no flag"), json);
    EXPECT_EQ(usage.code, exit_misuse);
    EXPECT_EQ(usage.err, "program: no flag\nusage: program\nTry 'program --help'.\n");
    const outcome memory = failed(std::bad_alloc(), json);
    EXPECT_EQ(memory.code, exit_failed);
    EXPECT_EQ(memory.err, "program: out of memory\n");
    EXPECT_EQ(memory.out, "");
  }
  EXPECT_EQ(failed(config_error("x is 3"), false).out, "") << "--json-keys is another flag";
}

}  // namespace
}  // namespace millrace::command
