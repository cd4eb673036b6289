// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "support/paths.hpp"
#include "support/preprocess_files.hpp"
#include "support/tokenizers.hpp"

namespace millrace::preprocess {
namespace {

// Tests that the time of all work counts for the right stage: reading, encoding or writing.
class BusyStages : public testing::Test {
 protected:
  stage_times busy(const std::string& text, std::size_t giant_bytes) const {
    const std::string input = (folder_ / "in.jsonl").string();
    test::write_text(input, text);
    run_options options;
    options.output_prefix = folder_ / "out";
    options.overwrite = true;
    options.workers = 2;
    options.limits.spool_folder = folder_.path();
    options.limits.giant_bytes = giant_bytes;
    return test::preprocess_files(*tokenizer_, {input}, options).busy;
  }

  test::temp_folder folder_{test::quick_folder()};
  std::unique_ptr<tokenizer::tokenizer> tokenizer_ = test::byte_tokenizer();
};

TEST_F(BusyStages, OfAFileThatCanBeCutWorkersRead) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "{\"text\": \"some words to read and to encode\"}\n";
  const stage_times times = busy(text, read_limits().giant_bytes);
  EXPECT_GT(times.read_spans, 0);
  EXPECT_GT(times.encode, 0);
  // The reader only finds the borders of spans. A span is a byte range that a worker reads. So the
  // reader needs less time than the workers.
  EXPECT_LT(times.read, times.read_spans + times.encode);
}

// A giant line is read, encoded and written in one step, the commit. Its time must still be divided
// among the three stages.
TEST_F(BusyStages, AGiantLineIsReadEncodedAndWritten) {
  const stage_times small = busy("{\"text\": \"a\"}\n", 1000);
  const stage_times giant =
      busy("{\"text\": \"" + std::string(std::size_t{8} << 20, 'a') + "\"}\n", 1000);
  EXPECT_GT(giant.read, small.read);
  EXPECT_GT(giant.encode, small.encode);
  EXPECT_GT(giant.write, small.write);
  EXPECT_GT(giant.encode, 0.0005) << "8 MiB of text";
}

}  // namespace
}  // namespace millrace::preprocess
