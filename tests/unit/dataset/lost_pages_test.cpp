// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/lost_pages.hpp>

#include <signal.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/io/file_mapping.hpp>

#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/sanitized.hpp"

#if !defined(MILLRACE_NO_SIGBUS_GUARD)

namespace millrace::dataset {
namespace {

constexpr std::size_t page = 4096;

/// Eight pages, of which the last four are lost.
class LostPages : public testing::Test {
 protected:
  LostPages() {
    test::write_bytes(path_, std::vector<std::byte>(8 * page, std::byte{7}));
    map_ = io::file_mapping(path_);
    std::filesystem::resize_file(path_, 4 * page);
  }
  std::byte at(std::size_t place) const {
    return *static_cast<const volatile std::byte*>(map_.bytes().data() + place);
  }

  test::temp_folder folder_;
  std::filesystem::path path_ = folder_ / "a";
  io::file_mapping map_;
};

TEST_F(LostPages, BecomeZerosAndAreRemembered) {
  const lost_page_watch watch(map_.bytes());
  EXPECT_EQ(at(4 * page - 1), std::byte{7});
  EXPECT_FALSE(watch.has_lost());
  EXPECT_NO_THROW(watch.check_there(path_));
  EXPECT_EQ(at(5 * page + 10), std::byte{0});
  EXPECT_EQ(at(6 * page), std::byte{0});
  EXPECT_EQ(watch.lost_at(), 5 * page + 10);  // the first lost address
  EXPECT_EQ(at(0), std::byte{7});
  try {
    watch.check_there(path_);
    FAIL() << "nothing was said";
  } catch (const io_error& e) {
    EXPECT_EQ(e.code(), ENODATA);
    EXPECT_EQ(e.path(), path_);
    EXPECT_EQ(e.offset(), 5 * page + 10);
  }
}

// If a page is lost although the file is long enough, the error is EIO. It does not say that the
// file became shorter.
TEST_F(LostPages, OfAFileThatIsLongEnoughCannotBeRead) {
  const lost_page_watch watch(map_.bytes());
  (void)at(5 * page);
  std::filesystem::resize_file(path_, 8 * page);
  try {
    watch.check_there(path_);
    FAIL() << "nothing was said";
  } catch (const io_error& e) {
    EXPECT_EQ(e.code(), EIO);
  }
}

TEST_F(LostPages, AreOfTheMapThatTheyWereIn) {
  const lost_page_watch watch(map_.bytes());
  {
    const io::file_mapping other(path_);
    const lost_page_watch gone(other.bytes());
  }
  const io::file_mapping whole(path_);
  const lost_page_watch beside(whole.bytes());
  (void)at(7 * page);
  EXPECT_TRUE(watch.has_lost());
  EXPECT_FALSE(beside.has_lost());
}

// Lost pages are detected even on a thread that blocks all signals. Many threads block all signals,
// so that one other thread handles them.
TEST_F(LostPages, DoNotMindBlockedSignals) {
  std::thread([&] {
    ::sigset_t all;
    ::sigfillset(&all);
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &all, nullptr), 0);
    const lost_page_watch watch(map_.bytes());
    EXPECT_EQ(at(5 * page), std::byte{0});
    EXPECT_TRUE(watch.has_lost());
  }).join();
}

struct ::sigaction restored_handler {};

/// Does what Python's faulthandler does: restores the handler that was installed earlier, and
/// raises the signal again.
void restore_and_raise_again(int signal) {
  (void)::sigaction(signal, &restored_handler, nullptr);
  (void)::raise(signal);
}
void install_handler_that_restores() {
  struct ::sigaction other {};
  other.sa_handler = restore_and_raise_again;
  other.sa_flags = SA_NODEFER;
  (void)::sigaction(SIGBUS, &other, &restored_handler);
}

TEST_F(LostPages, SurviveAHandlerThatRestoresOursAndRaisesAgain) {
  EXPECT_EQ(test::in_child([&] {
              const lost_page_watch watch(map_.bytes());
              for (const std::size_t lost : {5 * page, 6 * page}) {
                install_handler_that_restores();
                if (at(lost) != std::byte{0}) return 1;
              }
              return watch.lost_at() == 5 * page ? 0 : 2;
            }),
            0);
}

// AddressSanitizer's own handler ends the process with code 1.
constexpr int killed_by_sigbus = test::under_address_sanitizer ? 1 : 1000 + SIGBUS;

// A signal that is raised without a failed access is ignored once, because another handler may have
// raised it again.
TEST_F(LostPages, EndTheProcessIfASignalIsRaisedTwice) {
  EXPECT_EQ(test::in_child([&] {
              const lost_page_watch watch(map_.bytes());
              (void)::raise(SIGBUS);
              if (at(5 * page) != std::byte{0} || !watch.has_lost()) return 3;
              (void)::raise(SIGBUS);
              (void)::raise(SIGBUS);
              return 2;
            }),
            killed_by_sigbus);
}

TEST_F(LostPages, LeaveRaisedSignalsAloneWhereNothingIsWatched) {
  EXPECT_EQ(test::in_child([&] {
              { const lost_page_watch watch(map_.bytes()); }
              (void)::raise(SIGBUS);
              return 3;
            }),
            killed_by_sigbus);
}

}  // namespace
}  // namespace millrace::dataset

#endif
