// SPDX-License-Identifier: Apache-2.0
#include "service/config_tables.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "api/os/file.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t file_bytes_max = 1024 * 1024;

enum class Missing { allowed, refused };

using ReadRoot = std::function<void(ConfigTables&, toml::table const& root)>;

void read_text(std::string const& file, std::string const& content, ReadRoot const& read,
               std::vector<Violation>& violations) {
    ConfigTables tables;
    try {
        read(tables, toml::parse(content, file));
    } catch (toml::parse_error const& error) {
        tables.complain(error.source(), std::string(error.description()));
    }
    std::ranges::move(tables.violations(file), std::back_inserter(violations));
}

void read_config_file(std::string const& file, Missing missing, ReadRoot const& read,
                      std::vector<Violation>& violations) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
        int const error = errno;
        if (missing == Missing::refused || error != ENOENT)
            violations.push_back({file, "can't be read: " + errno_name(error)});
        return;
    }
    std::string content(file_bytes_max + 1, '\0');
    stream.read(content.data(), static_cast<std::streamsize>(content.size()));
    content.resize(static_cast<std::size_t>(stream.gcount()));
    if (stream.bad()) return violations.push_back({file, "can't be read"});
    if (content.size() > file_bytes_max)
        return violations.push_back({file, fmt::format("is longer than {} bytes", file_bytes_max)});
    read_text(file, content, read, violations);
}

std::vector<std::string> toml_files(std::string const& folder, std::vector<Violation>& violations) {
    std::error_code error;
    std::vector<std::string> files;
    for (auto const& file : paths_in(folder, error))
        if (file.extension() == ".toml") files.push_back(file.string());
    if (error && error != std::errc::no_such_file_or_directory)
        violations.push_back({folder, "can't be read: " + errno_name(error.value())});
    return files;
}

}  // namespace

void ConfigTables::read_all(toml::table const& table, std::string const& prefix, Keys const& keys) {
    for (auto const& [key, node] : table) {
        auto const known = keys.find(key.str());
        if (known == keys.end()) {
            complain(key.source(), fmt::format("{}{} is not known", prefix, key.str()));
            continue;
        }
        if (auto wrong = known->second(node); !wrong.empty())
            complain(node.source(), fmt::format("{}{} {}", prefix, key.str(), wrong));
    }
}

void ConfigTables::read_some(toml::table const& table, Keys const& keys) {
    for (auto const& [key, node] : table) {
        auto const setter = keys.find(key.str());
        if (setter == keys.end()) continue;
        if (auto wrong = setter->second(node); !wrong.empty())
            complain(node.source(), fmt::format("{} {}", key.str(), wrong));
    }
}

Setter ConfigTables::table(std::string prefix, Keys keys) {
    return [this, prefix = std::move(prefix),
            keys = std::move(keys)](toml::node const& node) -> std::string {
        if (!node.is_table()) return "must be a table";
        read_all(*node.as_table(), prefix, keys);
        return {};
    };
}

Setter ConfigTables::entries(
    std::string prefix, std::function<std::string(std::string const&, toml::node const&)> set) {
    return [this, prefix = std::move(prefix),
            set = std::move(set)](toml::node const& node) -> std::string {
        if (!node.is_table()) return "must be a table";
        for (auto const& [key, value] : *node.as_table())
            if (auto wrong = set(std::string(key.str()), value); !wrong.empty())
                complain(value.source(), fmt::format("{}{} {}", prefix, key.str(), wrong));
        return {};
    };
}

void ConfigTables::complain(toml::source_region const& where, std::string detail) {
    faults_.push_back({where.begin.line, std::move(detail)});
}

std::vector<Violation> ConfigTables::violations(std::string const& file) const {
    auto sorted = faults_;
    std::ranges::sort(sorted);
    std::vector<Violation> violations;
    for (auto& fault : sorted)
        violations.push_back({fmt::format("{}:{}", file, fault.line), std::move(fault.detail)});
    return violations;
}

std::vector<Violation> read_config_files(ConfigPaths const& paths, ReadRoot const& read) {
    std::vector<Violation> violations;
    read_config_file(paths.file, paths.named ? Missing::refused : Missing::allowed, read,
                     violations);
    for (auto const& file : toml_files(paths.folder, violations))
        read_config_file(file, Missing::refused, read, violations);
    return violations;
}

Result<void> none_of(std::vector<Violation> violations, std::string_view manual) {
    if (violations.empty()) return {};
    Error error{
        Problem::invalid_request, {}, fmt::format("correct it; {} describes every key", manual)};
    error.detail = fmt::format("{}: {}", violations.front().pointer, violations.front().detail);
    if (violations.size() > 1) error.detail += fmt::format(" (and {} more)", violations.size() - 1);
    error.violations = std::move(violations);
    return fail(std::move(error));
}

}  // namespace vfmgr
