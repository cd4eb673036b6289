// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/state.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/loader/batch_loader.hpp>

#include "support/config_refusal.hpp"
#include "support/loader_runs.hpp"
#include "support/paths.hpp"

namespace millrace::loader {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// Returns whether this process has a thread that describes the run.
bool is_describing() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    if (name == "mr-describe") return true;
  }
  return false;
}

class RunDescription : public testing::Test {
 protected:
  test::any_run run(test::run_kind kind) const {
    return test::run_of({.kind = kind, .blend = true}, prefixes_);
  }
  static loader_options options() { return {.batch_size = 2, .global_batch_size = 8}; }

  test::temp_folder folder_{test::quick_folder()};
  std::vector<std::filesystem::path> prefixes_ = test::store_three(folder_, 3);
};

// A broken sidecar must be reported with the first batches. Otherwise, the error would come with
// the first checkpoint, perhaps hours later.
TEST_F(RunDescription, TellsOfABrokenSidecarWithTheFirstBatches) {
  test::write_text(folder_ / "a.meta", R"({"millrace_meta": 1, "tokenizer": {}})");
  const auto loader = test::loader_of(run(test::run_kind::instant), options());
  EXPECT_THROW((void)loader->state(), format_error);  // state() waits until the run is described
  EXPECT_THAT(
      [&] { (void)loader->next(); },
      ThrowsMessage<format_error>(AllOf(HasSubstr("a.meta"), HasSubstr("\"fingerprint\""))));
  EXPECT_NO_THROW((void)loader->next()) << "it was told";
  EXPECT_THROW((void)loader->state(), format_error);
}

TEST_F(RunDescription, IsOfTheFilesThatItBeganWith) {
  const std::string meta =
      R"({"millrace_meta": 1, "tokenizer": {"fingerprint": "abc", "vocab_size": 9}})";
  test::write_text(folder_ / "a.meta", meta);
  const auto loader = test::loader_of(run(test::run_kind::instant), options());
  while (is_describing()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  test::write_text(folder_ / "a.meta", "{}");  // a new description would fail with this file
  EXPECT_EQ(loader->state().tokenizer, "abc");
}

TEST_F(RunDescription, RefusesABlendOfTwoTokenizersUnlessItIsAllowed) {
  for (const char* name : {"a", "b"}) {
    test::write_text(folder_ / (std::string(name) + ".meta"),
                     R"({"millrace_meta": 1, "tokenizer": {"fingerprint": ")" + std::string(name) +
                         R"(", "vocab_size": 9}})");
  }
  loader_options asked = options();
  EXPECT_THAT(test::config_refusal(
                  [&] { return test::loader_of(run(test::run_kind::instant), asked)->state(); }),
              HasSubstr("the datasets were made with two tokenizers"));
  asked.allow_several_tokenizers = true;
  EXPECT_EQ(test::loader_of(run(test::run_kind::instant), asked)->state().tokenizer, "a,b");
}

}  // namespace
}  // namespace millrace::loader
