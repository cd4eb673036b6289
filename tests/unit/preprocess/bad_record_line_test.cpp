// SPDX-License-Identifier: Apache-2.0
#include "output/bad_record_line.hpp"

#include <gtest/gtest.h>

#include "support/paths.hpp"

namespace millrace::preprocess {
namespace {

TEST(BadRecordLine, IsWhatItsPageSays) {
  const std::string raw = "no JSON";
  const record_fault fault{fault_kind::invalid_json, 0, "expected a value"};
  EXPECT_EQ(bad_record_line({.file = "in.jsonl",
                             .line = 2,
                             .begin = 14,
                             .size = raw.size(),
                             .fault = fault,
                             .raw = &raw}),
            test::read_text(test::golden("sidecars/no_json.bad")));
}

// Every byte of a record can be recovered, whatever its value.
TEST(BadRecordLine, KeepsBytesThatAreNoUtf8AsHexadecimal) {
  const std::string raw("\xFF\x00z", 3);
  const record_fault fault{fault_kind::invalid_utf8, 0, "not UTF-8"};
  const std::string line =
      bad_record_line({.file = "f", .line = 1, .begin = 0, .size = 3, .fault = fault, .raw = &raw});
  EXPECT_TRUE(line.ends_with("\"raw_hex\": \"ff007a\"}\n")) << line;
}

TEST(BadRecordLine, SaysThatARecordWasTooLongToKeep) {
  const record_fault fault{fault_kind::missing_key, 7, "no text"};
  const std::string line =
      bad_record_line({.file = "f", .line = 1, .begin = 0, .size = 3, .fault = fault});
  EXPECT_TRUE(line.ends_with("\"raw\": null}\n")) << line;
}

}  // namespace
}  // namespace millrace::preprocess
