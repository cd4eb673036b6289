// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <millrace/error.hpp>

#include "input/byte_source.hpp"
#include "support/child_process.hpp"
#include "support/compressed.hpp"
#include "support/compressed_input.hpp"
#include "support/read_source.hpp"

/// Inputs that can be read only once: pipes and stdin.
namespace millrace::preprocess {
namespace {

using test::some_text;
using PipeSource = test::compressed_input;

// A FIFO is read to its end. With `preprocess_data --input <(decompressor file)`, the pipe gives
// short reads and has no size.
TEST_F(PipeSource, ReadsAFifoToItsEnd) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  const std::string text = some_text(200'000);
  std::thread writer([&] {
    std::ofstream out(path(), std::ios::binary);
    for (std::size_t at = 0; at < text.size(); at += 777) {
      out << text.substr(at, 777) << std::flush;
    }
  });
  const auto source = open_input({.path = path()});
  std::string all;
  std::string part(4096, '?');
  while (const std::size_t n = source->read(std::as_writable_bytes(std::span(part)))) {
    all += part.substr(0, n);
  }
  writer.join();
  EXPECT_EQ(all, text);
}

// With `preprocess_data --input <(curl ...)`, the compression is detected from the first bytes,
// even if they arrive one by one.
TEST_F(PipeSource, TellsTheCompressionOfAPipe) {
  const std::string text = some_text(200'000);
  for (const std::string& compressed :
       {text, test::gzip(text), test::zstd_skippable("s") + test::zstd(text), std::string("{"),
        std::string("\x1F"), std::string()}) {
    ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
    std::thread writer([&] {
      std::ofstream out(path(), std::ios::binary);
      for (std::size_t at = 0; at < compressed.size(); at += at < 20 ? 1 : 40'000) {
        out << compressed.substr(at, at < 20 ? 1 : 40'000) << std::flush;
      }
    });
    const auto source = open_input({.path = path()});
    EXPECT_EQ(test::read_source(*source), compressed.size() < 20 ? compressed : text);
    EXPECT_EQ(source->position_bytes(), compressed.size());
    writer.join();
    std::filesystem::remove(path());
  }
}

TEST_F(PipeSource, TellsOfDamageInAPipe) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  const std::string compressed = test::gzip(some_text(1000));
  std::thread writer([&] { std::ofstream(path()) << compressed.substr(0, compressed.size() - 1); });
  const auto source = open_input({.path = path()});
  EXPECT_THROW((void)test::read_source(*source), format_error);
  writer.join();
}

TEST_F(PipeSource, ReadsStdinFromWhereItStands) {
  test::write_text(path(), "not for us\n" + test::gzip("text"));
  const int result = test::in_child([&] {
    const int fd = ::open(path().c_str(), O_RDONLY);
    if (::dup2(fd, 0) != 0 || ::lseek(0, 11, SEEK_SET) != 11) return 1;
    const auto files = plan_inputs(std::vector<std::string>{"-"});
    if (files.at(0).size_bytes != test::gzip("text").size()) return 2;
    const auto source = open_input(files[0]);
    return test::read_source(*source) == "text" ? 0 : 3;
  });
  EXPECT_EQ(result, 0);
}

TEST_F(PipeSource, CallsStdinByItsName) {
  test::write_text(path(), test::gzip("text").substr(0, 20));
  const int result = test::in_child([&] {
    if (::dup2(::open(path().c_str(), O_RDONLY), 0) != 0) return 1;
    try {
      (void)test::read_source(*open_input({.path = "-"}));
    } catch (const format_error& e) {
      return e.path() == "stdin" ? 0 : 2;
    }
    return 3;
  });
  EXPECT_EQ(result, 0);
}

// The writer of a pipe may be silent forever. Closing the input must not wait for it.
TEST_F(PipeSource, GivesUpAPipeThatBringsNothing) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  { const auto without_writer = open_input({.path = path()}); }
  const int both = ::open(path().c_str(), O_RDWR);  // also a writer, and keeps data in the pipe
  ASSERT_GE(both, 0);
  { const auto silent = open_input({.path = path()}); }
  ASSERT_EQ(::write(both, "{}\n", 3), 3);
  { const auto stalled = open_input({.path = path()}); }
  ::close(both);
}

}  // namespace
}  // namespace millrace::preprocess
