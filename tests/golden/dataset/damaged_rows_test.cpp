// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/packing/packed_rows.hpp>

#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/packing/row_table.hpp>

#include "support/paths.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

/// A line of golden/errors/findings.tsv.
struct finding {
  std::string file, faulty;
  std::uint64_t offset = 0;
  std::string expected, found;
};

std::vector<finding> findings_of_rows() {
  std::istringstream lines(test::read_text(test::golden("errors/findings.tsv")));
  std::vector<finding> all;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("rows_")) continue;
    std::istringstream words(line);
    finding one;
    std::string offset;
    for (std::string* word : {&one.file, &one.faulty, &offset, &one.expected, &one.found}) {
      std::getline(words, *word, '\t');
    }
    one.offset = std::stoull(offset);
    all.push_back(std::move(one));
  }
  return all;
}

/// Expects that a message has what the finding says. "-" stands for a value that no message has.
void expect_named(const std::string& message, const finding& one, const fs::path& file) {
  EXPECT_THAT(message, HasSubstr(file.string() + ": "));
  EXPECT_THAT(message, HasSubstr("(at byte " + std::to_string(one.offset) + ")"));
  for (const std::string& value : {one.expected, one.found}) {
    if (value == "-") continue;
    EXPECT_THAT(message, HasSubstr(value));
  }
}

class DamagedRows : public testing::Test {
 protected:
  DamagedRows() {
    for (const char* end : {".bin", ".idx"}) {
      fs::copy_file(test::golden(std::string("megatron/idx_uint16_3docs") + end), file(end));
    }
    for (const char* end : {".sum", ".rows-4"}) {
      fs::copy_file(test::golden(std::string("sidecars/idx_uint16_3docs") + end), file(end));
    }
  }
  fs::path file(const std::string& end) const { return folder_ / ("data" + end); }

  test::temp_folder folder_{test::quick_folder()};
};

// A damaged table is named and made again, with the bytes of the specification. A sound table that
// has another number of rows than the documents is an error when a row is read.
TEST_F(DamagedRows, AreFoundAsTheirPageSays) {
  const auto sound = test::read_bytes(file(".rows-4"));
  const std::vector<finding> findings = findings_of_rows();
  EXPECT_GT(findings.size(), 20U);
  for (const finding& one : findings) {
    SCOPED_TRACE(one.file);
    const index_columns columns(folder_ / "data");
    test::write_bytes(file(".rows-4"), sound);
    EXPECT_TRUE(packed_rows(columns, {.seq_len = 4}, file(".rows-4")).table().was_cached);
    test::write_bytes(file(".rows-4"), test::read_bytes(test::golden("errors/" + one.file)));
    const packed_rows rows(columns, {.seq_len = 4}, file(".rows-4"));
    if (one.faulty == ".rows-4") {
      EXPECT_FALSE(rows.table().was_cached);
      expect_named(rows.table().not_used, one, file(one.faulty));
      EXPECT_EQ(test::read_bytes(file(".rows-4")), sound);
      continue;
    }
    EXPECT_TRUE(rows.table().was_cached);
    try {
      std::vector<packed_part> parts;
      rows.row(0, parts);
      ADD_FAILURE() << "accepted";
    } catch (const format_error& e) {
      expect_named(e.what(), one, file(one.faulty));
    }
  }
}

}  // namespace
}  // namespace millrace::dataset
