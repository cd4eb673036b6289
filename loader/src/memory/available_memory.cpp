// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/available_memory.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::loader {

MILLRACE_INLINE std::optional<std::string> read_system_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return std::nullopt;
  const auto end = text.find_last_not_of(" \t\n");
  text.erase(end == std::string::npos ? 0 : end + 1);
  return text;
}

namespace detail {

/// Returns the number on the first line that starts with `key`, or nothing if there is no such
/// number.
MILLRACE_INLINE std::optional<std::uint64_t> number_behind(std::string_view text,
                                                           std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    if (!line.starts_with(key)) continue;
    const std::size_t digits = line.find_first_of("0123456789", key.size());
    if (digits == std::string_view::npos) return std::nullopt;
    std::uint64_t value = 0;
    const char* end = line.data() + line.size();
    if (std::from_chars(line.data() + digits, end, value).ec != std::errc()) return std::nullopt;
    return value;
  }
  return std::nullopt;
}

/// Returns how many bytes a control group may still use, or nothing if the group sets no limit.
MILLRACE_INLINE std::optional<std::uint64_t> room_of_group(const std::filesystem::path& group) {
  const auto limit = read_system_file(group / "memory.max");
  const auto current = read_system_file(group / "memory.current");
  if (!limit || !current) return std::nullopt;
  const auto most = number_behind(*limit, "");
  const auto used = number_behind(*current, "");
  if (!most || !used) return std::nullopt;  // the limit is "max"
  const std::string stat = read_system_file(group / "memory.stat").value_or("");
  // The kernel can reclaim these pages when necessary. They include active file pages, because all
  // pages of a dataset that is read repeatedly are active.
  std::uint64_t clean = 0;
  for (const char* key : {"inactive_file ", "active_file ", "slab_reclaimable "}) {
    clean += std::min(*used - clean, number_behind(stat, key).value_or(0));
  }
  return *most - std::min(*most, *used - clean);
}

}  // namespace detail

MILLRACE_INLINE std::optional<memory_room> available_memory(const system_files& files) {
  std::optional<memory_room> room;
  const auto take = [&](std::uint64_t bytes, std::string by) {
    if (!room || bytes < room->bytes) room = memory_room{bytes, std::move(by)};
  };
  const std::string meminfo = read_system_file(files.proc / "meminfo").value_or("");
  if (const auto kib = detail::number_behind(meminfo, "MemAvailable:")) {
    take(*kib * 1024, "MemAvailable");
  }
  // A line "0::/a/b" names the process's control group of version 2. The limits of the parents of
  // this group apply, too.
  const std::string groups = read_system_file(files.proc / "self/cgroup").value_or("");
  const std::size_t at = groups.starts_with("0::") ? 3 : groups.find("\n0::");
  if (at != std::string::npos && !groups.empty()) {
    const std::size_t begin = at == 3 ? at : at + 4;
    std::filesystem::path group = groups.substr(begin, groups.find('\n', begin) - begin);
    for (group = group.relative_path();; group = group.parent_path()) {
      const std::filesystem::path folder = files.sys / "fs/cgroup" / group;
      if (const auto bytes = detail::room_of_group(folder)) take(*bytes, folder.string());
      if (group.empty()) break;
    }
  }
  return room;
}

}  // namespace millrace::loader
