// SPDX-License-Identifier: Apache-2.0
#include "service/log.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace vfmgr {
namespace {

bool is_control(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

bool is_plain(char c) {
    return !is_control(c) && c != ' ' && c != '"' && c != '\\' && c != '=';
}

std::string escaped(std::string_view text) {
    std::string out;
    for (char const c : text) {
        if (c == '\n')
            out += "\\n";
        else if (is_control(c))
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else if (c == '"' || c == '\\')
            out += {'\\', c};
        else
            out += c;
    }
    return out;
}

std::string shown(std::string_view value) {
    bool plain = !value.empty();
    for (char const c : value) plain = plain && is_plain(c);
    return plain ? std::string(value) : '"' + escaped(value) + '"';
}

// systemd sets JOURNAL_STREAM to the device and inode of the stderr it created. A child whose
// stderr was redirected inherits the variable, so it counts only while stderr still is that stream.
bool stderr_is_journal() {
    char const* const stream = std::getenv("JOURNAL_STREAM");
    struct stat status{};
    if (!stream || ::fstat(STDERR_FILENO, &status) != 0) return false;
    return fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

std::string journal_name(std::string_view name) {
    std::string field = "VFMGR_";
    for (char const c : name) field += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return field;
}

bool send_to_journal(Severity severity, std::string const& line,
                     std::initializer_list<LogField> fields) {
    std::vector<std::string> texts = {"MESSAGE=" + line,
                                      fmt::format("PRIORITY={}", static_cast<int>(severity))};
    for (auto const& [name, value] : fields) texts.push_back(journal_name(name) + '=' + value);
    std::vector<iovec> parts;
    for (auto& text : texts) parts.push_back({text.data(), text.size()});
    return ::sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) == 0;
}

}  // namespace

std::string log_line(std::string_view message, std::initializer_list<LogField> fields) {
    std::string line = escaped(message);
    for (auto const& [name, value] : fields) line += fmt::format(" {}={}", name, shown(value));
    return line;
}

void log(Severity severity, std::string_view message, std::initializer_list<LogField> fields) {
    auto const line = log_line(message, fields);
    if (stderr_is_journal() && send_to_journal(severity, line, fields)) return;
    // One write, so that lines of several threads do not mix. A failure can't be reported anywhere.
    auto const text = fmt::format("<{}>{}\n", static_cast<int>(severity), line);
    [[maybe_unused]] auto const written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace vfmgr
