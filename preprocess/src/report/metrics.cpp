// SPDX-License-Identifier: Apache-2.0
#include "report/metrics.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::preprocess {
namespace {

// Without O_NONBLOCK, opening a FIFO that has no reader would block the run.
constexpr int open_flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK;

io::unique_fd open_to_write(const std::filesystem::path& path, int flags) {
  io::unique_fd fd(
      io::uninterrupted([&] { return ::open(path.c_str(), open_flags | flags, 0666); }));
  if (!fd) throw io_error(path, "open", errno);
  return fd;
}

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

metrics_format metrics_format_of(std::string_view name) {
  if (name == "json") return metrics_format::json;
  if (name == "prometheus") return metrics_format::prometheus;
  throw config_error(fmt::format("--metrics-format {}: expected json or prometheus", name));
}

run_metrics::run_metrics(std::filesystem::path path, metrics_format format,
                         std::uint64_t total_bytes, std::chrono::milliseconds period)
    : path_(std::move(path)),
      format_(format),
      total_bytes_(total_bytes),
      thread_([this, period] { run(period); }) {}

run_metrics::~run_metrics() {
  end(false);
}

void run_metrics::update(const progress_state& state) {
  const std::scoped_lock lock(mutex_);
  state_ = state;
}

void run_metrics::finish(const progress_state& state) {
  update(state);
  end(true);
}

std::optional<std::string> run_metrics::take_note() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(note_, std::nullopt);
}

void run_metrics::run(std::chrono::milliseconds period) {
  std::unique_lock lock(mutex_);
  for (auto next = start_ + period; !wake_.wait_until(lock, next, [&] { return ended_; });) {
    const progress_state state = state_;
    lock.unlock();
    write_sample(state, false);
    // After a stall, write only one sample instead of catching up on all missed samples.
    next = std::max(next + period, clock::now());
    lock.lock();
  }
}

void run_metrics::end(bool finished) {
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(ended_, true)) return;
  }
  wake_.notify_all();
  thread_.join();
  write_sample(state_, finished);
}

void run_metrics::write_sample(const progress_state& state, bool finished) {
  const metrics_sample now{.state = state,
                           .unix_seconds = unix_now(),
                           .seconds = std::chrono::duration<double>(clock::now() - start_).count(),
                           .total_bytes = total_bytes_,
                           .finished = finished};
  try {
    if (format_ == metrics_format::json) {
      write_line(metrics_json(now, before_));
    } else {
      replace(metrics_prometheus(now));
    }
  } catch (const std::exception& e) {
    fail(e.what());
  }
  before_ = now;
}

// Writes each line with one call of write(2), so that a concurrent reader sees complete lines.
void run_metrics::write_line(std::string_view line) {
  if (!file_) file_ = open_to_write(path_, O_TRUNC | O_APPEND);
  const std::string text = fmt::format("{}{}", torn_ ? "\n" : "", line);
  const ::ssize_t written =
      io::uninterrupted([&] { return ::write(file_.get(), text.data(), text.size()); });
  if (written < 0) throw io_error(path_, "write", errno);
  torn_ = static_cast<std::size_t>(written) != text.size();
  if (torn_) throw io_error(path_, "write", ENOSPC);
}

void run_metrics::replace(std::string_view text) {
  const auto there = io::status_if_there(path_);
  if (there && !S_ISREG(there->st_mode)) {
    throw io_error(path_, "rename (not a regular file)", EINVAL);
  }
  std::filesystem::path partial = path_;
  partial += ".partial";
  const io::unique_fd file = open_to_write(partial, O_TRUNC | O_NOFOLLOW);
  io::pwrite_all(file, std::as_bytes(std::span(text)), 0, partial);
  if (::rename(partial.c_str(), path_.c_str()) != 0) throw io_error(path_, "rename", errno);
}

void run_metrics::fail(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  if (std::exchange(failed_, true)) return;
  note_ = fmt::format("note: --metrics: {}; the run continues without these metrics", why);
}

namespace {

class metrics_writer {
 public:
  void describe(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(text_),
                   "# HELP millrace_preprocess_{0} {2}\n# TYPE millrace_preprocess_{0} {1}\n", name,
                   type, help);
  }
  template <class T>
  void sample(std::string_view name, T value, std::string_view labels = {}) {
    fmt::format_to(std::back_inserter(text_), "millrace_preprocess_{}{} {}\n", name, labels, value);
  }
  template <class T>
  void counter(std::string_view name, T value, std::string_view help) {
    describe(name, "counter", help);
    sample(name, value);
  }
  template <class T>
  void gauge(std::string_view name, T value, std::string_view help) {
    describe(name, "gauge", help);
    sample(name, value);
  }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

template <class T>
double rate(T now, T before, double seconds) {
  return seconds > 0 ? (static_cast<double>(now) - static_cast<double>(before)) / seconds : 0;
}

}  // namespace

std::string metrics_json(const metrics_sample& now, const metrics_sample& before) {
  const progress_state& s = now.state;
  const double passed = now.seconds - before.seconds;
  formats::json_writer json;
  json.open('{').key("unix_seconds").value(now.unix_seconds).key("seconds").value(now.seconds);
  json.key("documents").value(s.documents).key("tokens").value(s.tokens);
  json.key("input_bytes").value(s.input_bytes).key("read_bytes").value(s.read_bytes);
  json.key("total_bytes").value(now.total_bytes).key("output_bytes").value(s.output_bytes);
  json.key("bad_records").value(s.bad_records);
  json.key("blocks_in_flight").value(s.blocks_in_flight);
  json.key("documents_per_second")
      .value(rate(s.documents, before.state.documents, passed))
      .key("tokens_per_second")
      .value(rate(s.tokens, before.state.tokens, passed))
      .key("input_bytes_per_second")
      .value(rate(s.input_bytes, before.state.input_bytes, passed));
  json.key("busy_seconds").open('{');
  json.key("read").value(s.busy.read).key("read_spans").value(s.busy.read_spans);
  json.key("encode").value(s.busy.encode);
  json.key("write").value(s.busy.write).key("sync").value(s.busy.sync).close('}');
  json.key("finished").value(now.finished).close('}');
  return json.text() + "\n";
}

std::string metrics_prometheus(const metrics_sample& now) {
  const progress_state& s = now.state;
  metrics_writer out;
  out.counter("documents_total", s.documents, "Documents written.");
  out.counter("tokens_total", s.tokens, "Tokens written, over all keys.");
  out.counter("input_bytes_total", s.input_bytes, "Bytes of input processed, decompressed.");
  out.counter("read_bytes_total", s.read_bytes, "Bytes of input read, as stored on disk.");
  out.counter("output_bytes_total", s.output_bytes, "Bytes written to all outputs.");
  out.counter("bad_records_total", s.bad_records, "Bad records skipped.");
  out.describe("busy_seconds_total", "counter",
               "Time that a stage was busy; for read_spans and encode, the sum over all workers.");
  out.sample("busy_seconds_total", s.busy.read, R"({stage="read"})");
  out.sample("busy_seconds_total", s.busy.read_spans, R"({stage="read_spans"})");
  out.sample("busy_seconds_total", s.busy.encode, R"({stage="encode"})");
  out.sample("busy_seconds_total", s.busy.write, R"({stage="write"})");
  out.sample("busy_seconds_total", s.busy.sync, R"({stage="sync"})");
  out.counter("elapsed_seconds_total", now.seconds, "Time since the run began.");
  out.gauge("blocks_in_flight", s.blocks_in_flight, "Blocks read, and not yet written.");
  out.gauge("input_size_bytes", now.total_bytes, "Size of all inputs on disk; 0 if unknown.");
  out.gauge("finished", now.finished ? 1 : 0, "Whether the run finished successfully: 1 or 0.");
  return out.text();
}

}  // namespace millrace::preprocess
