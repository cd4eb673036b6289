// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/indexed_dataset.hpp>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

namespace fs = std::filesystem;

// Replaces a file as a writer does: with a rename, after which the name refers to the new file.
void replace(const fs::path& path, const std::string& text) {
  const fs::path partial = path.string() + ".partial";
  test::write_text(partial, text);
  fs::rename(partial, path);
}

// Returns the code of the io_error that `f` throws, or 0 if `f` succeeds.
int code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const io_error& e) {
    return e.code();
  }
  return 0;
}

class MapUnreplacedIdx : public testing::Test {
 protected:
  std::string mapped_text(const std::function<void()>& map_bin) const {
    const auto mapping = detail::map_unreplaced_idx(idx_, map_bin);
    return {reinterpret_cast<const char*>(mapping.bytes().data()), mapping.bytes().size()};
  }

  test::temp_folder folder_;
  fs::path idx_ = folder_ / "a.idx";
};

TEST_F(MapUnreplacedIdx, MapsOnceIfNothingHappens) {
  replace(idx_, "old");
  int calls = 0;
  EXPECT_EQ(mapped_text([&] { ++calls; }), "old");
  EXPECT_EQ(calls, 1);
}

TEST_F(MapUnreplacedIdx, StartsOverIfTheIndexWasReplaced) {
  replace(idx_, "old");
  int calls = 0;
  const auto map_bin = [&] {
    if (++calls < 4) replace(idx_, "number " + std::to_string(calls));
  };
  EXPECT_EQ(mapped_text(map_bin), "number 3");
  EXPECT_EQ(calls, 4);
}

// While a writer replaces a dataset, the old index may be removed before the new index has its
// final name. Opening the dataset then waits for the new index.
TEST_F(MapUnreplacedIdx, WaitsForTheNewIndex) {
  replace(idx_, "old");
  std::jthread writer;
  int calls = 0;
  const auto map_bin = [&] {
    if (++calls > 1) return;
    fs::remove(idx_);
    writer = std::jthread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      replace(idx_, "new");
    });
  };
  EXPECT_EQ(mapped_text(map_bin), "new");
  EXPECT_EQ(calls, 2);
}

TEST_F(MapUnreplacedIdx, GivesUpIfItIsReplacedEveryTime) {
  replace(idx_, "old");
  int calls = 0;
  EXPECT_EQ(code_of([&] { (void)mapped_text([&] { replace(idx_, std::to_string(++calls)); }); }),
            ESTALE);
  EXPECT_EQ(calls, 10);
}

TEST_F(MapUnreplacedIdx, GivesUpIfItStaysAway) {
  replace(idx_, "old");
  EXPECT_EQ(code_of([&] { (void)mapped_text([&] { fs::remove(idx_); }); }), ESTALE);
}

TEST_F(MapUnreplacedIdx, DoesNotWaitForWhatIsNotThere) {
  int calls = 0;
  EXPECT_EQ(code_of([&] { (void)mapped_text([&] { ++calls; }); }), ENOENT);
  EXPECT_EQ(calls, 0);
  replace(idx_, "old");
  EXPECT_EQ(code_of([&] {
              (void)mapped_text([&] {
                ++calls;
                throw io_error(folder_ / "a.bin", "open", ENOENT);
              });
            }),
            ENOENT);
  EXPECT_EQ(calls, 1);
}

// A writer replaces a dataset while the test opens it. The opened dataset never mixes files of the
// old and the new version. The files of both versions have the same sizes. So only the order in
// which files are opened can prevent a mix.
TEST(IndexedDatasetReplaced, IsNeverAMixOfTwo) {
  const test::temp_folder folder;
  const test::documents_of<std::uint16_t> even = {{{1, 1, 1}, {1}}};
  const test::documents_of<std::uint16_t> odd = {{{2}, {2, 2, 2}}};
  const fs::path prefix = folder / "data";
  test::write_dataset(prefix, even);

  std::jthread writer([&](const std::stop_token& stop) {
    const fs::path next = folder / "next";
    for (int i = 1; !stop.stop_requested(); ++i) {
      test::write_dataset(next, i % 2 == 0 ? even : odd);
      fs::remove(test::suffixed(prefix, ".idx"));
      fs::rename(test::suffixed(next, ".bin"), test::suffixed(prefix, ".bin"));
      fs::rename(test::suffixed(next, ".idx"), test::suffixed(prefix, ".idx"));
      if (i % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  int opened = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end && !HasFailure()) {
    const int code = code_of([&] {
      const indexed_dataset data(prefix);
      EXPECT_EQ(data.stream()[0], data.sequence_length(0) == 3 ? 1 : 2) << "after " << opened;
      ++opened;
    });
    EXPECT_TRUE(code == 0 || code == ENOENT || code == ESTALE) << code;
  }
  EXPECT_GE(opened, 10);
}

}  // namespace
}  // namespace millrace::dataset
