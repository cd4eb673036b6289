// SPDX-License-Identifier: Apache-2.0
//
// Tests all kinds of runs on a file system that refuses mmap, and under system limits that prevent
// mmap.
#include <millrace/loader/batch_loader.hpp>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "support/faulty_calls.hpp"
#include "support/loader_runs.hpp"
#include "support/paths.hpp"

namespace millrace::loader {
namespace {

struct served {
  std::vector<test::served_row> rows;
  dataset::run_state state;
};

class RefusedMaps : public testing::Test {
 protected:
  /// Creates, plans and reads a run with one blocked document. Returns all its rows.
  served all_of(test::run_kind kind, bool blend) const {
    const test::any_run run =
        test::run_of({.kind = kind, .blend = blend, .pad_documents_to = 2}, prefixes_);
    loader_options options{.batch_size = 4, .global_batch_size = 8, .fields = test::all_fields};
    options.edits = {{.kind = dataset::edit_kind::block,
                      .unit = dataset::edit_unit::documents,
                      .first = 7,
                      .last = 8,
                      .source = prefixes_[0].string(),
                      .why = "leaked"}};
    const std::unique_ptr<batch_loader> loader = test::loader_of(run, options);
    served all;
    while (const auto batch = loader->next()) {
      for (std::int64_t r = 0; r < batch->layout().rows(); ++r) {
        all.rows.push_back(test::row_of(*batch, r));
      }
    }
    all.state = loader->state();
    return all;
  }

  test::temp_folder folder_{test::quick_folder()};
  std::vector<std::filesystem::path> prefixes_ = test::store_three(folder_, 5);
};

TEST_F(RefusedMaps, ServeTheSameRows) {
  for (const auto kind :
       {test::run_kind::megatron, test::run_kind::instant, test::run_kind::packed}) {
    for (const bool blend : {false, true}) {
      SCOPED_TRACE(testing::Message() << test::name_of(kind) << (blend ? ", a blend" : ""));
      const served expected = all_of(kind, blend);
      EXPECT_GT(expected.rows.size(), 60);
      for (const int code : {ENODEV, ENOMEM}) {
        const test::fault_scope refused(test::map_fault, code);
        const served found = all_of(kind, blend);
        EXPECT_GT(test::map_fault.failed, 0);
        EXPECT_EQ(found.rows, expected.rows);
        EXPECT_EQ(found.state, expected.state);
      }
    }
  }
}

}  // namespace
}  // namespace millrace::loader
