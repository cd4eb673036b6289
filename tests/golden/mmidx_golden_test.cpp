// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include <millrace/formats/detail/mmidx_verify.hpp>
#include <millrace/formats/mmidx.hpp>

#include "support/paths.hpp"

namespace millrace::formats {
namespace {

// Every .idx that Megatron wrote must be valid and match its .bin. Encoding its contents again must
// give the same bytes.
TEST(MmidxGolden, EveryFileIsVerifiedAndEncodedAlike) {
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::golden("megatron"))) {
    std::filesystem::path path = entry.path();
    if (path.extension() != ".idx") continue;
    SCOPED_TRACE(path.string());
    const auto file = test::read_bytes(path);
    const mmidx_view idx = parse_mmidx(file);
    EXPECT_EQ(encode_mmidx(idx.type, idx.lengths.to_vector(), idx.document_index.to_vector(),
                           idx.modes.to_vector()),
              file);
    verify_mmidx(idx, std::filesystem::file_size(path.replace_extension(".bin")));
    ++files;
  }
  EXPECT_GE(files, 13U);
}

// This test lists the contents of the files itself, so it does not depend on the library's reader.
TEST(MmidxGolden, KnownContentsGiveMegatronsBytes) {
  struct dataset {
    const char* name;
    dtype type;
    std::vector<std::int32_t> lengths;
    std::vector<std::int64_t> document_index;
    std::vector<std::int8_t> modes;
  };
  const std::vector<dataset> datasets = {
      {"idx_uint16_3docs", dtype::uint16, {3, 2, 3}, {0, 1, 1, 3}, {}},
      {"idx_int32", dtype::int32, {3}, {0, 1}, {}},
      {"idx_mm", dtype::int32, {2, 1, 1}, {0, 2, 3}, {0, 1, 1}},
      {"idx_empty", dtype::uint16, {}, {0}, {}},
      {"merge_a_e_a", dtype::uint16, {3, 2, 3, 3, 2, 3}, {0, 1, 1, 3, 4, 4, 6}, {}},
  };
  for (const dataset& d : datasets) {
    EXPECT_EQ(encode_mmidx(d.type, d.lengths, d.document_index, d.modes),
              test::read_bytes(test::golden("megatron") / (std::string(d.name) + ".idx")))
        << d.name;
  }
}

}  // namespace
}  // namespace millrace::formats
