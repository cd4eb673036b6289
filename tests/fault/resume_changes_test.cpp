// SPDX-License-Identifier: Apache-2.0
#include "support/resume_fault.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using test::file_set;
using test::strings;

/// Inputs that shrink or grow while a run reads them. Each input is longer than the read-ahead. It
/// consists of several parts (members or frames if it is compressed). A file that is cut between
/// two parts is still valid.
class ResumeChanges : public test::resume_fault {
 protected:
  static constexpr std::size_t lines_of_part = 22'000;  // 1.2 MB; half of that if compressed
  static constexpr std::size_t parts_of_file = 12;

  // Returns the lines of a part. They depend only on `part`, and their random digits do not
  // compress well.
  std::string lines(unsigned part) const {
    std::mt19937_64 random(part);
    std::string text;
    for (std::size_t i = 0; i < lines_of_part; ++i) {
      text += "{\"text\": \"" + std::to_string(random()) + std::to_string(random()) + "\"}\n";
    }
    return text;
  }

  // Pauses a run that has begun to read, changes the input, and lets the run continue.
  test::program_result changed_while_read(const std::function<void()>& change) {
    test::program_options options;
    options.environment = test::small_blocks(8192);
    empty_out();
    test::running_program program(command({"--workers", "1"}), options);
    std::error_code none;
    while (!program.ended() && (fs::file_size(partial("bin"), none) < 1'000'000 || none)) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    EXPECT_FALSE(program.ended());
    program.send(SIGSTOP);
    change();
    program.send(SIGCONT);
    return program.wait();
  }

  void expect_goes_on(const file_set& wanted) {
    expect_nothing_half({});
    const auto result = run({"--resume"}, {});
    ASSERT_EQ(result.status, 0) << result.err;
    expect_files(wanted);
  }

  /// @param compress  turns the text of a part into the bytes of this part in the file
  void expect_changes_told(const std::string& name,
                           const std::function<std::string(const std::string&)>& compress) {
    SCOPED_TRACE(name);
    std::vector<std::string> parts;
    for (unsigned part = 0; part <= parts_of_file; ++part) parts.push_back(compress(lines(part)));
    const std::string more = parts.back();
    parts.pop_back();
    std::string whole;
    for (const std::string& part : parts) whole += part;
    const std::string input = add(name, whole);
    const file_set wanted = undisturbed();
    const std::size_t sound = whole.size() - parts.back().size();
    for (const std::size_t size : {sound, whole.size() - parts.back().size() / 2}) {
      SCOPED_TRACE(size == sound ? "between two parts" : "within a part");
      expect_sentence(changed_while_read([&] { fs::resize_file(input, size); }), name + ": ");
      test::write_text(input, whole);
      expect_goes_on(wanted);
    }
    // The run may stop reading at the size that the file had when the run started. If the run reads
    // further, it must report that the file grew.
    const auto grown = changed_while_read([&] { test::write_text(input, whole + more); });
    if (grown.status == 0) {
      expect_files(wanted);
    } else {
      expect_sentence(grown, name + ": the file became longer while it was being read");
      expect_goes_on(undisturbed());
    }
  }
};

TEST_F(ResumeChanges, OfAPlainFileAreTold) {
  expect_changes_told("a.jsonl", [](const std::string& text) { return text; });
}

TEST_F(ResumeChanges, OfGzipAreTold) {
  expect_changes_told("a.jsonl.gz", [](const std::string& text) { return test::gzip(text); });
}

TEST_F(ResumeChanges, OfZstdInFramesAreTold) {
  expect_changes_told("a.jsonl.zst", [](const std::string& text) { return test::zstd(text); });
}

// If the frames of a zstd file do not state the size of their contents, a run can read the file
// only from its start. The zstd program writes such frames when it compresses a pipe.
TEST_F(ResumeChanges, OfZstdFromItsFrontAreTold) {
  expect_changes_told("a.jsonl.zst", [](const std::string& text) {
    return test::compress_with({"zstd", "-q", "-1", "--no-content-size"}, text);
  });
}

TEST_F(ResumeChanges, OfBzip2AreTold) {
  if (optional_input_parts().find("without bzip2") != std::string::npos) {
    GTEST_SKIP() << "NOT tested: this build has no bzip2";
  }
  expect_changes_told("a.jsonl.bz2", [](const std::string& text) {
    return test::compress_with({"bzip2", "-1"}, text);
  });
}

TEST_F(ResumeChanges, OfXzAreTold) {
  if (optional_input_parts().find("without liblzma") != std::string::npos) {
    GTEST_SKIP() << "NOT tested: this build has no liblzma";
  }
  expect_changes_told("a.jsonl.xz", [](const std::string& text) {
    return test::compress_with({"xz", "-0"}, text);
  });
}

}  // namespace
}  // namespace millrace::preprocess
