// SPDX-License-Identifier: Apache-2.0
//
// Makes one or more consecutive allocations of the loader fail, starting with the k-th. Later
// allocations succeed again. A separate child process tests each value of k. The program checks
// these rules:
//
// - Every call either succeeds or throws. No child crashes, terminates or hangs.
// - Every batch has the right contents, and no batch is skipped. A loader stops early only after it
//   has thrown an error.
// - After the failures, the same loader resumes from a state, and a new loader serves all batches.
// - After the failures, the same reader fills the same requests.
//
// The program prints a line for each failure, then a table. It exits with 0 if all rules held, and
// with 1 if a rule was broken or no case was tried. It exits with 77 if this machine or this build
// has none of the requested readers.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/detail/io/uring_probe.hpp>
#include <millrace/loader/loader_report.hpp>

#include "support/fail_kth_allocation.hpp"
#include "support/seed.hpp"
#include "support/summed_dataset.hpp"
#include "unit/dataset/run/stored_run.hpp"
#include "unit/loader/io/reader_kinds.hpp"
#include "unit/loader/served_rows.hpp"

namespace {

using namespace millrace;  // NOLINT: a program

constexpr std::int64_t rows_of_batch = 2;
constexpr std::int64_t never = test::fail_kth_allocation::never;
constexpr int most_errors = 4;  // after this many errors, the harness gives up on a loader

// Reports that one of the rules above was broken. Errors of the loader itself have other types.
struct broken_rule : std::logic_error {
  using std::logic_error::logic_error;
};

// The task of a child and its report to the parent, both in shared memory.
struct child_report {
  test::fail_kth_allocation what;
  std::atomic<std::int64_t> allocations;
  std::atomic<int> errors;
  char text[600];  // NOLINT: plain memory
};

void tell(child_report& report, const std::string& text) {
  std::snprintf(report.text, sizeof report.text, "%s", text.c_str());
}

// Counts an error. The error must have a message and one of the types that callers expect.
void count_error(child_report& report, const std::exception& e) {
  const test::exempt_allocations own;
  ++report.errors;
  if (std::string_view(e.what()).empty()) throw broken_rule("an error without a message");
  const bool expected = dynamic_cast<const std::bad_alloc*>(&e) != nullptr ||
                        dynamic_cast<const error*>(&e) != nullptr ||
                        dynamic_cast<const std::system_error*>(&e) != nullptr;
  if (!expected) throw broken_rule(std::string("an error of an unexpected type: ") + e.what());
}

// Calls f. If f throws an error, counts it and returns false.
template <class F>
bool try_to(child_report& report, const F& f) {
  try {
    f();
    return true;
  } catch (const broken_rule&) {
    throw;
  } catch (const std::exception& e) {
    count_error(report, e);
    return false;
  }
}

// ---------------------------------------------------------------------------------------------
// Tests of loaders: the datasets, their runs, and the expected contents of each batch.

using expected_batches = std::vector<std::vector<test::served_row>>;

class small_runs {
 public:
  small_runs() : stored_(40'000, 30'000, 700) {
    std::mt19937 random(5);
    prefixes_ = {test::store_documents(folder_ / "a", random, 300),
                 test::store_documents(folder_ / "b", random, 200)};
    data_.emplace(stored_.prefix());
  }

  static const std::vector<std::string>& orders() {
    static const std::vector<std::string> all = {"stored", "instant", "packed", "megatron"};
    return all;
  }

  std::unique_ptr<loader::batch_loader> loader_of(const std::string& order,
                                                  const loader::loader_options& options) {
    if (order == "stored") {
      loader::loader_options with_length = options;
      with_length.seq_len = 500;
      return std::make_unique<loader::batch_loader>(*data_, with_length);
    }
    return test::loader_of(run_of(order), options);
  }

 private:
  // Returns the run for `order`. The first call for an order creates the run. The parent makes this
  // call before it starts the children that need the run.
  const test::any_run& run_of(const std::string& order) {
    std::optional<test::any_run>& run = order == "instant"  ? instant_
                                        : order == "packed" ? packed_
                                                            : megatron_;
    if (run) return *run;
    if (order == "instant") return run.emplace(test::instant_run_of(prefixes_, 100, 2, 60));
    if (order == "packed") return run.emplace(test::packed_run_of(prefixes_, 100, 2, 60));
    return run.emplace(test::megatron_run_of(prefixes_, 100, "100,0,0", 60));
  }

  test::temp_folder folder_;
  test::summed_dataset<std::uint16_t> stored_;
  std::vector<std::filesystem::path> prefixes_;
  std::optional<dataset::indexed_dataset> data_;
  std::optional<test::any_run> instant_, packed_, megatron_;
};

loader::loader_options options_with(const test::reader_kind& kind) {
  loader::loader_options options;
  options.batch_size = rows_of_batch;
  options.threads = 2;
  options.prefetch_samples = 16;
  options.fields = test::all_fields;
  options.boundaries = true;
  options.reader = [&kind](const std::vector<loader::data_file>& files) {
    return kind.make(files, {});
  };
  return options;
}

// Takes the batches from index `at` to `end` (exclusive), and compares them with `expected`.
// Returns the index at which it stopped. Adds the number of errors to `errors`.
std::int64_t serve(loader::batch_loader& from, const expected_batches& expected, std::int64_t at,
                   std::int64_t end, int& errors, child_report& report) {
  const int most = errors + most_errors;
  while (at < end && errors < most) {
    std::optional<loader::batch> batch;
    if (!try_to(report, [&] { batch = from.next(); })) {
      ++errors;
      continue;
    }
    if (!batch) {
      if (errors == 0) throw broken_rule("the batches ended early, and no error came before");
      return at;
    }
    const test::exempt_allocations own;
    if (batch->first_sample() != at * rows_of_batch) {
      throw broken_rule("batch " + std::to_string(at) + " is due, and sample " +
                        std::to_string(batch->first_sample()) + " came");
    }
    const auto& rows = expected[static_cast<std::size_t>(at)];
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (test::row_of(*batch, static_cast<std::int64_t>(r)) != rows[r]) {
        throw broken_rule("batch " + std::to_string(at) + " holds other values");
      }
    }
    ++at;
    if (from.consumed_samples() != at * rows_of_batch) {
      throw broken_rule("consumed_samples is " + std::to_string(from.consumed_samples()) +
                        " after batch " + std::to_string(at));
    }
  }
  return at;
}

// Serves all batches from index `at`, while every allocation succeeds. No error may occur.
void serve_all(loader::batch_loader& from, const expected_batches& expected, std::int64_t at,
               const char* who) {
  child_report fresh{};
  int errors = 0;
  const auto end = static_cast<std::int64_t>(expected.size());
  if (serve(from, expected, at, end, errors, fresh) != end || fresh.errors > 0 || from.next()) {
    throw broken_rule(std::string(who) + " does not serve all batches, with memory there again");
  }
}

expected_batches batches_of(loader::batch_loader& from, dataset::run_state& state) {
  expected_batches all;
  while (const auto batch = from.next()) {
    auto& rows = all.emplace_back();
    for (std::int64_t r = 0; r < batch->layout().rows(); ++r) {
      rows.push_back(test::row_of(*batch, r));
    }
  }
  state = from.state();
  state.consumed_samples = 2 * rows_of_batch;
  return all;
}

using make_loader = std::function<std::unique_ptr<loader::batch_loader>()>;

void use_loader(const make_loader& make, const expected_batches& expected,
                const dataset::run_state& state, child_report& report) {
  const auto end = static_cast<std::int64_t>(expected.size());
  std::unique_ptr<loader::batch_loader> kept;
  int errors_before = 0;
  int errors = 0;  // number of errors of `kept`
  test::arm(report.what);
  // This loader is destroyed while allocations still fail.
  try_to(report, [&] { serve(*make(), expected, 0, 3, errors_before, report); });
  if (try_to(report, [&] { kept = make(); })) {
    serve(*kept, expected, 0, end / 2, errors, report);
    try_to(report, [&] {
      if (kept->state().consumed_samples != kept->consumed_samples()) {
        throw broken_rule("state() is of another place");
      }
    });
    if (!try_to(report, [&] { kept->load_state(state); })) ++errors;
    serve(*kept, expected, kept->consumed_samples() / rows_of_batch, end, errors, report);
    try_to(report, [&] { (void)kept->observe(); });
  }
  report.allocations = test::disarm();

  const auto fresh = make();  // created while `kept` exists, so that both share files and threads
  serve_all(*fresh, expected, 0, "a new loader");
  if (!kept) return;
  bool is_described = true;
  try {
    (void)kept->state();
  } catch (const std::bad_alloc&) {
    is_described = false;  // an error occurred at creation, and `state` keeps throwing it
  }
  if (is_described) {
    kept->load_state(state);
    serve_all(*kept, expected, 2, "the same loader, resumed,");
  }
  if (report.errors == 0 && !is_described) throw broken_rule("state() alone knows of an error");
}

// Tests of readers without a loader: the files, and the ranges that each round reads.

class ranges_of_files {
 public:
  ranges_of_files() {
    for (const char* name : {"a.bin", "b.bin", "c.bin"}) {
      std::vector<std::byte>& all = contents_.emplace_back(1'500'001);
      for (std::byte& b : all) b = static_cast<std::byte>(random_());
      test::write_bytes(folder_ / name, all);
      files_.push_back({folder_ / name, all.size()});
    }
    // Rounds 3 and 6 have ranges so large that several threads share the work. All other rounds
    // have small ranges.
    for (int round = 0; round < 8; ++round) {
      auto& ranges = rounds_.emplace_back();
      const bool is_large = round == 3 || round == 6;
      for (int i = 0; i < (is_large ? 30 : 12); ++i) {
        const std::uint64_t bytes = is_large ? 40'000 + random_() % 20'000 : random_() % 9'000;
        ranges.push_back({static_cast<std::int64_t>(random_() % files_.size()),
                          random_() % (1'500'001 - bytes), bytes});
      }
    }
  }

  const std::vector<loader::data_file>& files() const { return files_; }
  std::size_t rounds() const { return rounds_.size(); }

  // Prefetches the next round and gathers this one. After an error, tries again. Makes at most
  // `most_errors` attempts. Returns whether the round was gathered.
  bool gather(loader::range_reader& reader, std::size_t round, child_report& report) const {
    std::vector<std::byte> memory;
    std::vector<loader::read_request> requests;
    {
      const test::exempt_allocations own;
      std::size_t all = 0;
      for (const auto& range : rounds_[round]) all += range.bytes;
      memory.assign(all, std::byte{0xAB});
      std::size_t at = 0;
      for (const auto& range : rounds_[round]) {
        requests.push_back({range, memory.data() + at});
        at += range.bytes;
      }
    }
    if (round + 1 < rounds()) reader.prefetch(rounds_[round + 1]);
    for (int attempt = 0; attempt < most_errors; ++attempt) {
      if (!try_to(report, [&] { reader.gather(requests); })) continue;
      for (const loader::read_request& r : requests) {
        const auto& all = contents_[static_cast<std::size_t>(r.from.file)];
        if (r.from.bytes > 0 && std::memcmp(r.to, all.data() + r.from.offset, r.from.bytes) != 0) {
          throw broken_rule("round " + std::to_string(round) + " holds other bytes");
        }
      }
      return true;
    }
    return false;
  }

  void gather_all(loader::range_reader& reader, const char* who) const {
    child_report fresh{};
    for (std::size_t round = 0; round < rounds(); ++round) {
      if (!gather(reader, round, fresh) || fresh.errors > 0) {
        throw broken_rule(std::string(who) + " does not fill round " + std::to_string(round) +
                          ", with memory there again");
      }
    }
  }

 private:
  test::temp_folder folder_;
  std::mt19937_64 random_{7};
  std::vector<std::vector<std::byte>> contents_;
  std::vector<loader::data_file> files_;
  std::vector<std::vector<loader::file_range>> rounds_;
};

// Calls f on another thread. If f throws, rethrows the exception on this thread.
template <class F>
void on_another_thread(const F& f) {
  std::exception_ptr failure;
  std::optional<std::thread> thread;
  {
    const test::exempt_allocations own;
    thread.emplace([&] {
      try {
        f();
      } catch (...) {
        failure = std::current_exception();
      }
    });
  }
  thread->join();
  if (failure) std::rethrow_exception(failure);
}

void use_reader(const test::reader_kind& kind, const ranges_of_files& ranges,
                child_report& report) {
  std::unique_ptr<loader::range_reader> reader;
  test::arm(report.what);
  try_to(report, [&] {  // this reader is destroyed while allocations still fail
    const auto first = kind.make(ranges.files(), {});
    ranges.gather(*first, 0, report);
  });
  if (try_to(report, [&] { reader = kind.make(ranges.files(), {}); })) {
    for (std::size_t round = 0; round < ranges.rounds(); ++round) {
      const auto gather = [&] { ranges.gather(*reader, round, report); };
      round == 5 ? on_another_thread(gather) : gather();
    }
    try_to(report, [&] { (void)reader->report(); });
  }
  report.allocations = test::disarm();
  if (reader) ranges.gather_all(*reader, "the same reader");
  const auto fresh = kind.make(ranges.files(), {});
  ranges.gather_all(*fresh, "a new reader");
}

// ---------------------------------------------------------------------------------------------

struct arguments {
  std::set<std::string> readers;
  std::set<std::string> orders;
  std::vector<std::size_t> least_bytes;
  std::vector<std::int64_t> failures;
  std::int64_t first = 1;
  std::int64_t last = never;
  std::int64_t most = never;
  std::int64_t seconds = never;
  unsigned limit_s = 20;
};

struct line_of_table {
  std::int64_t allocations = 0, runs = 0, errors = 0, complete = 0, hangs = 0, crashes = 0,
               wrong = 0;
};

constexpr int broke_a_rule = 3;
constexpr int is_skipped = 77;  // the exit status that ctest counts as skipped

using steady = std::chrono::steady_clock;

class harness {
 public:
  /// @param uses  number of planned calls of run()
  harness(const arguments& args, std::size_t uses)
      : args_(args),
        random_(test::seed(1)),
        report_(new (::mmap(nullptr, sizeof(child_report), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0)) child_report{}),
        lines_left_(uses * args.least_bytes.size() * args.failures.size()) {}

  // For each combination of --least-bytes and --failures, runs `use` in one child process per value
  // of k. Prints one line of the table per combination.
  void run(const std::string& name, const std::function<void(child_report&)>& use) {
    for (const std::size_t least : args_.least_bytes) {
      line_of_table counting;
      if (!one(name, {.least_bytes = least}, use, counting)) continue;
      const std::int64_t allocations = report_->allocations;
      for (const std::int64_t failures : args_.failures) {
        line_of_table line;
        line.allocations = allocations;
        const auto end = end_of_line();
        for (const std::int64_t k : chosen(allocations)) {
          if (steady::now() > end) break;
          one(name, {k, failures, least}, use, line);
        }
        print(name, least, failures, line);
      }
    }
  }

  static void print_head() {
    std::printf("%-32s %8s %8s %8s %6s %7s %9s %6s %8s %6s\n", "reader and order",
                "bytes>=", "failures", "allocs", "runs", "errors", "complete", "hangs", "crashes",
                "wrong");
  }

  void print_sum() const {
    std::printf("failing allocations: %lld cases tried, %lld wrong\n",
                static_cast<long long>(cases_), static_cast<long long>(wrong_));
  }
  bool all_good() const { return cases_ > 0 && wrong_ == 0; }

 private:
  // Divides the remaining time of --seconds evenly among the remaining lines of the table.
  steady::time_point end_of_line() {
    const auto left = static_cast<std::int64_t>(lines_left_--);
    if (args_.seconds == never) return steady::time_point::max();
    const auto now = steady::now();
    return now + (begin_ + std::chrono::seconds(args_.seconds) - now) / left;
  }

  // Returns the values of k to test: all values from --first to --last, or a random sample of
  // --most values if there are more.
  std::vector<std::int64_t> chosen(std::int64_t allocations) {
    std::vector<std::int64_t> all;
    for (std::int64_t k = args_.first; k <= std::min(allocations, args_.last); ++k) {
      all.push_back(k);
    }
    const auto most = static_cast<std::size_t>(args_.most);
    if (all.size() > most) {
      std::vector<std::int64_t> some;
      std::ranges::sample(all, std::back_inserter(some), args_.most, random_);
      all = std::move(some);
    }
    // Time may run out before all values are tested. A random order avoids testing only small
    // values.
    if (args_.seconds != never) std::ranges::shuffle(all, random_);
    return all;
  }

  // Runs one child and returns its wait status.
  int status_of(const test::fail_kth_allocation& what,
                const std::function<void(child_report&)>& use, unsigned limit_s) {
    report_->what = what;
    report_->allocations = 0;
    report_->errors = 0;
    report_->text[0] = '\0';
    const ::pid_t child = ::fork();
    if (child == 0) {
      (void)::alarm(limit_s);  // ends the child if it hangs
      int status = 0;
      try {
        use(*report_);
      } catch (const std::exception& e) {
        (void)test::disarm();
        tell(*report_, e.what());
        status = broke_a_rule;
      }
      ::_exit(status);
    }
    int status = 0;
    (void)::waitpid(child, &status, 0);
    return status;
  }

  // Runs one case. Returns true if no rule was broken.
  bool one(const std::string& name, const test::fail_kth_allocation& what,
           const std::function<void(child_report&)>& use, line_of_table& line) {
    const auto hangs = [](int status) {
      return WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    };
    int status = status_of(what, use, args_.limit_s);
    // Perhaps the child was only slow, so try again with a longer limit.
    if (hangs(status)) status = status_of(what, use, 10 * args_.limit_s);
    ++line.runs;
    if (what.k != never) ++cases_;
    const bool is_killed = WIFSIGNALED(status);
    if (!is_killed && WEXITSTATUS(status) == 0) {
      ++(report_->errors > 0 ? line.errors : line.complete);
      return true;
    }
    const char* what_happened = "wrong";
    if (hangs(status)) {
      ++line.hangs;
      what_happened = "hangs";
    } else if (is_killed || WEXITSTATUS(status) != broke_a_rule) {
      ++line.crashes;
      what_happened = "crashes";
    } else {
      ++line.wrong;
    }
    std::printf("  %s %s: k %lld, %lld failures, allocations >= %zu bytes, status %d: %s\n",
                name.c_str(), what_happened, static_cast<long long>(what.k),
                static_cast<long long>(what.failures), what.least_bytes, status, report_->text);
    std::fflush(stdout);
    ++wrong_;
    return false;
  }

  static void print(const std::string& name, std::size_t least, std::int64_t failures,
                    const line_of_table& line) {
    const auto number = [](std::int64_t n) { return static_cast<long long>(n); };
    const std::string count = failures == never ? "rest" : std::to_string(failures);
    std::printf("%-32s %8zu %8s %8lld %6lld %7lld %9lld %6lld %8lld %6lld\n", name.c_str(), least,
                count.c_str(), number(line.allocations), number(line.runs), number(line.errors),
                number(line.complete), number(line.hangs), number(line.crashes),
                number(line.wrong));
    std::fflush(stdout);
  }

  arguments args_;
  std::mt19937_64 random_;
  child_report* report_;
  std::size_t lines_left_;
  steady::time_point begin_ = steady::now();
  std::int64_t cases_ = 0;
  std::int64_t wrong_ = 0;
};

constexpr const char* usage =
    "usage: loader_allocations [options]\n"
    "\n"
    "Makes the k-th allocation of the loader fail, for many k, each in a child process.\n"
    "\n"
    "  --reader NAME     only this reader; may be repeated (default: all)\n"
    "  --order NAME      stored, instant, packed, megatron, or ranges for readers on their own;\n"
    "                    may be repeated (default: all)\n"
    "  --least-bytes N   count only allocations of N bytes or more; may be repeated\n"
    "                    (default: 1 and 10240)\n"
    "  --failures N      fail the k-th and the N - 1 that follow; \"rest\": until the loader is\n"
    "                    done; may be repeated (default: 1, 20 and rest)\n"
    "  --first K         smallest k (default: 1)\n"
    "  --last K          largest k (default: all that a run makes)\n"
    "  --most N          at most N random k per line of the table, by MILLRACE_SEED\n"
    "                    (default: no limit)\n"
    "  --seconds N       stop after about N seconds, shared evenly among the lines of the table, "
    "with\n"
    "                    k in random order (default: no limit)\n"
    "  --limit SECONDS   limit of a child; it hangs if it exceeds this, and ten times this when\n"
    "                    it is repeated (default: 20)\n";

arguments parse(std::span<char*> words) {
  arguments args;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::string_view name = words[i];
    if (i + 1 == words.size()) throw config_error(std::string(name) + " needs a value");
    const std::string value = words[i + 1];
    const auto number = [&] {
      char* end = nullptr;
      const long long n = std::strtoll(value.c_str(), &end, 10);
      if (value.empty() || *end != '\0' || n < 1) {
        throw config_error(std::string(name) + " is '" + value + "', expected a number from 1 on");
      }
      return static_cast<std::int64_t>(n);
    };
    if (name == "--reader") {
      args.readers.insert(value);
    } else if (name == "--order") {
      args.orders.insert(value);
    } else if (name == "--least-bytes") {
      args.least_bytes.push_back(static_cast<std::size_t>(number()));
    } else if (name == "--failures") {
      args.failures.push_back(value == "rest" ? never : number());
    } else if (name == "--first") {
      args.first = number();
    } else if (name == "--last") {
      args.last = number();
    } else if (name == "--most") {
      args.most = number();
    } else if (name == "--seconds") {
      args.seconds = number();
    } else if (name == "--limit") {
      args.limit_s = static_cast<unsigned>(number());
    } else {
      throw config_error("unknown option: " + std::string(name));
    }
  }
  if (args.least_bytes.empty()) args.least_bytes = {1, 10240};
  if (args.failures.empty()) args.failures = {1, 20, never};
  return args;
}

bool is_asked(const std::set<std::string>& names, const std::string& name) {
  return names.empty() || names.contains(name);
}

void expect_known(const char* flag, const std::set<std::string>& asked,
                  const std::set<std::string>& known) {
  const auto unknown = std::ranges::find_if_not(
      asked, [&](const std::string& name) { return known.contains(name); });
  if (unknown == asked.end()) return;
  std::string all;
  for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
  throw config_error(std::string(flag) + " is '" + *unknown + "', expected one of: " + all);
}

// Returns the requested readers that exist on this machine. Prints the names of the missing
// readers.
std::vector<test::reader_kind> readers_of(const arguments& args) {
  std::set<std::string> absent = {"io_uring",
                                  "io_uring_small"};  // absent from builds without liburing
  std::set<std::string> known = absent;
  std::vector<test::reader_kind> kinds;
  for (const auto& kind : test::reader_kinds()) {
    known.insert(kind.name);
    absent.erase(kind.name);
    if (!is_asked(args.readers, kind.name)) continue;
    if (const auto probe = loader::probe_uring();
        kind.name.starts_with("io_uring") && !probe.usable) {
      std::cout << "skipped: " << kind.name << ": " << probe.why << '\n';
      continue;
    }
    kinds.push_back(kind);
  }
  for (const std::string& name : absent) {
    if (is_asked(args.readers, name)) {
      std::cout << "skipped: " << name << ": this build is without liburing\n";
    }
  }
  expect_known("--reader", args.readers, known);
  std::cout << std::flush;
  return kinds;
}

int run(const arguments& args) {
  std::set<std::string> known = {"ranges"};
  known.insert(small_runs::orders().begin(), small_runs::orders().end());
  expect_known("--order", args.orders, known);
  const auto kinds = readers_of(args);
  if (kinds.empty()) return is_skipped;
  small_runs runs;
  const ranges_of_files ranges;
  harness all(args, kinds.size() * (args.orders.empty() ? known : args.orders).size());
  harness::print_head();
  for (const auto& kind : kinds) {
    if (!is_asked(args.orders, "ranges")) break;
    all.run(kind.name + " ranges", [&](child_report& report) { use_reader(kind, ranges, report); });
  }
  for (const std::string& order : small_runs::orders()) {
    if (!is_asked(args.orders, order)) continue;
    expected_batches expected;
    dataset::run_state state;
    {
      const auto pread = test::kind_of<loader::pread_reader>("pread");
      expected = batches_of(*runs.loader_of(order, options_with(pread)), state);
    }
    for (const auto& kind : kinds) {
      const auto make = [&] { return runs.loader_of(order, options_with(kind)); };
      all.run(kind.name + " " + order,
              [&](child_report& report) { use_loader(make, expected, state, report); });
    }
  }
  all.print_sum();
  return all.all_good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(std::span(argv, static_cast<std::size_t>(argc)).subspan(1)));
  } catch (const config_error& e) {
    std::cerr << "loader_allocations: " << e.what() << '\n' << usage;
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "loader_allocations: " << e.what() << '\n';
    return 1;
  }
}
