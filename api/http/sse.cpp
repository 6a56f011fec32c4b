// SPDX-License-Identifier: Apache-2.0
#include "api/http/sse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace vfmgr::http {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

}  // namespace

std::string sse_event(std::uint64_t id, std::string_view name, std::string_view data) {
    if (name.empty()) return fmt::format("id: {}\ndata: {}\n\n", id, data);
    return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", id, name, data);
}

std::string sse_heartbeat(std::optional<std::uint64_t> id) {
    return id ? fmt::format(":\nid: {}\n\n", *id) : ":\n\n";
}

bool SseParser::feed(std::string_view part, std::function<void(SentEvent const&)> const& take) {
    for (char const c : part) {
        if (too_long_) return false;
        bool const ends_return = std::exchange(after_return_, c == '\r') && c == '\n';
        if (ends_return) continue;
        if (c == '\n' || c == '\r') {
            end_line(take);
        } else {
            line_ += c;
            too_long_ = line_.size() + event_.data.size() > bytes_max_;
        }
    }
    return !too_long_;
}

void SseParser::end_line(std::function<void(SentEvent const&)> const& take) {
    std::string_view line = line_;
    if (std::exchange(first_line_, false) && line.starts_with(byte_order_mark))
        line.remove_prefix(byte_order_mark.size());
    if (!line.empty()) {
        auto const colon = std::min(line.find(':'), line.size());
        auto value = line.substr(std::min(colon + 1, line.size()));
        if (value.starts_with(' ')) value.remove_prefix(1);
        read_field(line.substr(0, colon), value);
        line_.clear();
        return;
    }
    line_.clear();
    last_id_ = id_;
    auto event = std::exchange(event_, {});
    if (!std::exchange(has_data_, false)) return;
    event.id = last_id_;
    take(event);
}

// A comment is a field without a name. Fields that are not known are left out.
void SseParser::read_field(std::string_view field, std::string_view value) {
    if (field == "data") {
        if (std::exchange(has_data_, true)) event_.data += '\n';
        event_.data += value;
    } else if (field == "event") {
        event_.name = value;
    } else if (field == "id" && value.find('\0') == value.npos) {
        id_ = value;
    }
}

}  // namespace vfmgr::http
