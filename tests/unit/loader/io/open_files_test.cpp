// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/open_files.hpp>

#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/loader/detail/io/mmap_reader.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>

#include "support/child_process.hpp"
#include "support/fail_kth_allocation.hpp"
#include "support/paths.hpp"

namespace millrace::loader {
namespace {

using testing::HasSubstr;

class OpenFiles : public testing::Test {
 protected:
  data_file add(const std::string& name, std::size_t bytes = 5000) const {
    test::write_bytes(folder_ / name, std::vector<std::byte>(bytes, std::byte{1}));
    return {folder_ / name, bytes};
  }
  std::vector<std::shared_ptr<open_files::file>> attach(open_files& table, int count) const {
    std::vector<std::shared_ptr<open_files::file>> files;
    for (int i = 0; i < count; ++i) files.push_back(table.attach(add(std::to_string(i))));
    return files;
  }
  static std::shared_ptr<open_files> table(const open_file_limits& limits = {}) {
    return std::make_shared<open_files>(limits);
  }
  /// Returns the io_error that opening the file `f` throws.
  static io_error error_of(open_files& table, open_files::file& f) {
    try {
      (void)table.open(f);
    } catch (const io_error& e) {
      return e;
    }
    ADD_FAILURE() << "no error";
    return {"", "", 0};
  }

  test::temp_folder folder_;
};

TEST_F(OpenFiles, FilesAreOpenedWhenTheyAreRead) {
  const auto t = table();
  const auto f = t->attach({folder_ / "absent", 10});
  EXPECT_EQ(t->usage().opens, 0);
  EXPECT_EQ(error_of(*t, *f).code(), ENOENT);
  add("absent", 10);
  EXPECT_TRUE(t->open(*f)->fd);
  EXPECT_TRUE(t->open(*f)->fd);
  EXPECT_EQ(t->usage().opens, 1);
}

TEST_F(OpenFiles, ReadersOfOneFileShareIt) {
  const auto t = table();
  const data_file what = add("a");
  const auto f = t->attach(what);
  EXPECT_EQ(f, t->attach(what));
  (void)t->map_at(*f, 0);
  EXPECT_EQ(f, t->attach(what));
  EXPECT_EQ(t->usage().files, 1);
  EXPECT_EQ(t->usage().maps, 1);
}

// If any allocation fails, the table must stay consistent. Releasing files must not need an
// allocation.
TEST_F(OpenFiles, AFailedAllocationLeavesTheTableAsItWas) {
  const data_file a = add("a");
  const data_file b = add("b");
  const int status = test::in_child([&] {
    bool failed = true;
    for (std::int64_t k = 1; failed; ++k) {
      const auto t = table({.files = 2, .maps = 1});
      std::shared_ptr<open_files::file> f, g;
      test::arm({.k = k});
      try {
        f = t->attach(a);
        g = t->attach(b);
        (void)t->open(*f);
        (void)t->map_at(*f, 0);
        (void)t->lend();  // this closes the map
        (void)t->map_at(*g, 0);
      } catch (const std::bad_alloc&) {
      }
      failed = test::disarm() >= k;
      f = t->attach(a);
      g = t->attach(b);
      if (!t->open(*f)->fd || !t->open(*g)->fd) return 1;
      for (const auto& one : {f, g, f}) {  // an idle map is replaced only after some uses
        for (int use = 0; use < 100; ++use) (void)t->map_at(*one, 0);
        if (!t->map_at(*one, 0).got) return 2;
      }
      (void)t->lend();
      test::arm({.k = 1, .failures = test::fail_kth_allocation::never});
      f = nullptr;
      g = nullptr;
      (void)test::disarm();
      if (t->usage().files != 0 || t->usage().maps != 0) return 3;
    }
    return 0;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(OpenFiles, NothingStaysOpenForNobody) {
  const auto t = table();
  {
    const auto f = t->attach(add("a"));
    (void)t->map_at(*f, 0);
    EXPECT_EQ(t->usage().files, 1);
  }
  EXPECT_EQ(t->usage().files, 0);
  EXPECT_EQ(t->usage().maps, 0);
}

TEST_F(OpenFiles, TheLeastUsedIsClosed) {
  const auto t = table({.files = 4});
  const auto files = attach(*t, 5);
  for (int i = 0; i < 4; ++i) (void)t->open(*files[static_cast<std::size_t>(i)]);
  (void)t->open(*files[0]);
  (void)t->open(*files[4]);  // evicts file 1
  EXPECT_EQ(t->usage().files, 4);
  EXPECT_EQ(t->usage().opens, 5);
  for (const std::size_t i : {0u, 2u, 3u, 4u}) (void)t->open(*files[i]);
  EXPECT_EQ(t->usage().opens, 5);
  (void)t->open(*files[1]);
  EXPECT_EQ(t->usage().opens, 6);
}

TEST_F(OpenFiles, WhatIsReadFromStaysOpen) {
  const auto t = table({.files = 4});
  const auto files = attach(*t, 8);
  std::vector<open_files::held_descriptor> held;
  for (const auto& f : files) held.push_back(t->open(*f));
  EXPECT_EQ(t->usage().files, 8);  // all files are in use, so none can be closed
  for (const auto& h : held) EXPECT_EQ(io::regular_file_size(h->fd, "a"), 5000u);
  held.clear();
  (void)t->open(*t->attach(add("9")));
  EXPECT_LE(t->usage().files, 4);
}

// Files that are used in turn must keep their maps (mappings). Only a map that has become idle
// gives way to another file.
TEST_F(OpenFiles, MapsGoToOthersOnceTheyAreIdle) {
  const auto t = table({.files = 100, .maps = 2});
  const auto files = attach(*t, 4);
  for (int round = 0; round < 10; ++round) {
    for (const auto& f : files) (void)t->map_at(*f, 0);
  }
  EXPECT_EQ(t->usage().mmaps, 2);
  EXPECT_THAT(t->map_at(*files[3], 0).why_not, HasSubstr("all 2 allowed maps"));
  for (int i = 0; i < 100; ++i) (void)t->map_at(*files[3], 0);
  EXPECT_NE(t->map_at(*files[3], 0).got, nullptr);
  EXPECT_EQ(t->usage().maps, 2);
}

TEST_F(OpenFiles, LongFilesAreMappedInParts) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  const auto t = table({.map_bytes = 2 * mib});
  const auto f = t->attach(add("a", 5 * mib));
  const auto last = t->map_at(*f, 5 * mib - 1);
  ASSERT_NE(last.got, nullptr);
  EXPECT_TRUE(last.made);
  EXPECT_EQ(last.got->bytes.offset(), 4 * mib);
  EXPECT_EQ(last.got->bytes.bytes(), mib);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(last.got->bytes.data()) % (2 * mib), 0u);
  EXPECT_FALSE(t->map_at(*f, 4 * mib).made);
  EXPECT_EQ(t->map_at(*f, 4 * mib - 1).got->bytes.offset(), 2 * mib);
  EXPECT_EQ(t->usage().maps, 2);
  EXPECT_EQ(t->usage().files, 1);
}

TEST_F(OpenFiles, MappedBytesAreBounded) {
  const auto t = table({.mapped_bytes = 12'000});
  const auto files = attach(*t, 3);
  for (const auto& f : files) (void)t->map_at(*f, 0);
  EXPECT_EQ(t->usage().maps, 2);
  // A single map is always allowed, even if it exceeds the byte limit.
  const auto large = table({.mapped_bytes = 10});
  EXPECT_NE(large->map_at(*large->attach(add("large")), 0).got, nullptr);
}

TEST_F(OpenFiles, OnlyTheSameFileIsOpenedAgain) {
  const auto t = table();
  const auto f = t->attach(add("a"));
  (void)t->open(*f);
  t->close(*f);
  (void)t->open(*f);

  t->close(*f);
  std::filesystem::last_write_time(
      folder_ / "a", std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(error_of(*t, *f).code(), ESTALE);

  const auto g = t->attach(add("b"));
  (void)t->open(*g);
  t->close(*g);
  test::write_bytes(folder_ / "c", std::vector<std::byte>(5000));
  std::filesystem::rename(folder_ / "c", folder_ / "b");
  EXPECT_THAT(error_of(*t, *g).what(), HasSubstr("this is no longer the file"));
}

// Maps and files may outlive the table. A thread pool that still works on a map may be the last
// owner of that map.
TEST_F(OpenFiles, WhatIsHandedOutMayOutliveTheTable) {
  auto t = table();
  auto f = t->attach(add("a"));
  auto map = t->map_at(*f, 0).got;
  auto held = t->open(*f);
  ASSERT_TRUE(map);
  EXPECT_EQ(t->usage().maps, 1);
  const std::weak_ptr<open_files> end = t;
  f = nullptr;
  t = nullptr;
  ASSERT_TRUE(end.expired());
  EXPECT_EQ(map.use_count(), 1);
  map = nullptr;  // ASan checks the counters that this updates
  EXPECT_EQ(held.use_count(), 1);
  held = nullptr;
}

TEST_F(OpenFiles, WhatIsNoFileIsRefused) {
  const auto t = table();
  std::filesystem::create_directory(folder_ / "folder");
  EXPECT_EQ(error_of(*t, *t->attach({folder_ / "folder", 10})).code(), EISDIR);
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(error_of(*t, *t->attach({folder_ / "fifo", 10})).code(), EINVAL);
}

// A rank has two thousand sources, but may use only 32 descriptors and 8 maps.
TEST_F(OpenFiles, TwoThousandFilesAreReadUnderSmallLimits) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself needs descriptors";
#endif
  std::vector<data_file> files;
  for (int i = 0; i < 2000; ++i) {
    const auto path = folder_ / std::to_string(i);
    test::write_text(path, std::to_string(i) + std::string(50, 'x'));
    files.push_back({path, std::to_string(i).size() + 50});
  }
  const auto read_all = [&](auto& reader) {
    for (int round = 0; round < 2; ++round) {
      for (std::size_t first = 0; first < files.size(); first += 100) {
        std::vector<std::string> found(100, std::string(60, '\0'));
        std::vector<read_request> requests;
        for (std::size_t i = 0; i < 100; ++i) {
          const data_file& file = files[first + i];
          requests.push_back({{static_cast<std::int64_t>(first + i), 0, file.bytes},
                              std::as_writable_bytes(std::span(found[i])).data()});
        }
        reader.gather(requests);
        for (std::size_t i = 0; i < 100; ++i) {
          found[i].resize(files[first + i].bytes);
          if (found[i] != std::to_string(first + i) + std::string(50, 'x')) return false;
        }
      }
    }
    return true;
  };
  const auto in_limits = [&](const std::function<bool(reader_options)>& run) {
    return test::in_child([&] {
      const ::rlimit both{32, 32};
      if (::setrlimit(RLIMIT_NOFILE, &both) != 0) return test::cannot_try;
      auto few = std::make_shared<open_files>(open_file_limits{.maps = 8});
      if (!run({.files = few})) return 1;
      return few->usage().most_files <= 32 && few->usage().most_maps <= 8 ? 0 : 2;
    });
  };
  EXPECT_EQ(in_limits([&](const reader_options& options) {
              pread_reader reader(files, options);
              return read_all(reader);
            }),
            0);
  EXPECT_EQ(in_limits([&](const reader_options& options) {
              mmap_reader reader(files, options);
              return read_all(reader);
            }),
            0);
}

}  // namespace
}  // namespace millrace::loader
