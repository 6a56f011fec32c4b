// SPDX-License-Identifier: Apache-2.0
#include "api/types/json.hpp"

#include <algorithm>

#include "api/types/text.hpp"

namespace vfmgr {

namespace {

constexpr int depth_max = 32;
constexpr std::size_t pointer_token_bytes_max = 64;

// nlohmann silently keeps the last of two equal keys; on a host the first may be the one that was
// meant.
struct StrictParse {
    std::vector<std::set<std::string, std::less<>>> keys;
    std::string complaint;

    bool see(int depth, nlohmann::json::parse_event_t event, nlohmann::json const& parsed) {
        using Event = nlohmann::json::parse_event_t;
        // A value that begins here is one level deeper than its container.
        bool const opens = event == Event::object_start || event == Event::array_start;
        if (depth + (opens ? 1 : 0) > depth_max)
            complaint = fmt::format("is nested deeper than {}", depth_max);
        if (event == Event::object_start) keys.emplace_back();
        if (event == Event::object_end && !keys.empty()) keys.pop_back();
        if (event == Event::key && !keys.empty() && complaint.empty()) {
            auto const& key = parsed.get_ref<std::string const&>();
            if (!keys.back().insert(key).second)
                complaint = fmt::format("has the key '{}' twice", pointer_token(key));
        }
        return true;
    }
};

bool is_continuation(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace

std::string pointer_token(std::string_view key) {
    bool const cut = key.size() > pointer_token_bytes_max;
    if (cut) {
        std::size_t end = pointer_token_bytes_max;
        while (end > 0 && is_continuation(key[end])) --end;
        key = key.substr(0, end);
    }
    std::string token;
    for (char const byte : key) {
        if (byte == '~')
            token += "~0";
        else if (byte == '/')
            token += "~1";
        else
            token += byte;
    }
    return cut ? token + "…" : token;
}

void check_text(JsonReader& reader, std::string const& pointer, std::string_view text,
                std::size_t characters_max) {
    if (characters_in(text) > characters_max)
        reader.complain(pointer, fmt::format("must be at most {} characters", characters_max));
    else if (escaped(text, Shown::word) != text)
        reader.complain(pointer, "must not contain control characters");
}

Result<nlohmann::json> parse_json(std::string_view text) {
    StrictParse strict;
    auto const callback = [&](int depth, nlohmann::json::parse_event_t event,
                              nlohmann::json& parsed) { return strict.see(depth, event, parsed); };
    auto document = nlohmann::json::parse(text, callback, false);
    // nlohmann takes a NUL for the end of the text and ignores what follows.
    if (document.is_discarded() || text.find('\0') != std::string_view::npos)
        return fail(Problem::invalid_request, "the body is not valid JSON",
                    "send one JSON object in UTF-8");
    if (!strict.complaint.empty())
        return fail(Problem::invalid_request, "the body " + strict.complaint,
                    "send each key once, and only the documented ones");
    return document;
}

std::string to_json_text(nlohmann::json const& document) {
    return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace vfmgr
