// SPDX-License-Identifier: Apache-2.0
// Runs at build time: embed OPENAPI PROBLEMS JSON SOURCE [SHARED]. Writes the first, which is YAML,
// as JSON, and it and the second as the source of the constants in documents.hpp. What the first
// refers to in SHARED, another OpenAPI document, is copied into it: clients get one document.
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace {

using Json = nlohmann::ordered_json;  // the order in which the document explains itself

// Plain scalars by YAML 1.2's core schema, as far as OpenAPI documents have them.
Json json_of_plain(std::string const& text) {
    if (text.empty() || text == "null" || text == "~") return nullptr;
    if (text == "true" || text == "false") return text == "true";
    std::int64_t whole = 0;
    auto const* const end = text.data() + text.size();
    if (auto const [stopped, error] = std::from_chars(text.data(), end, whole);
        error == std::errc{} && stopped == end)
        return whole;
    return text;
}

Json json_of(YAML::Node const& node) {
    if (node.IsSequence()) {
        auto array = Json::array();
        for (auto const& item : node) array.push_back(json_of(item));
        return array;
    }
    if (node.IsMap()) {
        auto object = Json::object();
        for (auto const& member : node) object[member.first.Scalar()] = json_of(member.second);
        return object;
    }
    if (node.IsNull()) return nullptr;
    // yaml-cpp marks quoted and block scalars with this tag: they are text whatever they look like.
    return node.Tag() == "!" ? Json(node.Scalar()) : json_of_plain(node.Scalar());
}

std::string text_of(char const* path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(std::string(path) + " can't be read");
    return {std::istreambuf_iterator<char>(file), {}};
}

void write(char const* path, std::string const& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    if (!file.flush()) throw std::runtime_error(std::string(path) + " can't be written");
}

// Takes components of a shared document that another one refers to.
class Taken {
  public:
    // References begin with `prefix`: "openapi.yaml#/components/schemas/About".
    Taken(Json const& shared, std::string prefix) : shared_(shared), prefix_(std::move(prefix)) {}

    // Makes each reference into the shared document one into `node`'s own.
    void resolve(Json& node) {
        if (node.is_object() && node.contains("$ref")) {
            auto text = node["$ref"].get<std::string>();
            if (text.starts_with(prefix_)) {
                node["$ref"] = text.substr(prefix_.size() - 1);
                take(text.substr(prefix_.size()));
            }
        }
        if (node.is_structured())
            for (auto& each : node) resolve(each);
    }
    void add_to(Json& document) const {
        for (auto const& [place, component] : components_) {
            Json::json_pointer const there(place);
            if (document.contains(there)) throw std::runtime_error(place + " is in both documents");
            document[there] = component;
        }
    }

  private:
    // With all that it refers to there.
    void take(std::string const& place) {
        if (!place.starts_with("/components/"))
            throw std::runtime_error(place + " is no component that could be taken");
        auto const [it, added] = components_.emplace(place, shared_.at(Json::json_pointer(place)));
        if (added) take_named_in(it->second);
    }
    void take_named_in(Json const& node) {
        if (node.is_object() && node.contains("$ref"))
            take(node["$ref"].get<std::string>().substr(1));
        if (node.is_structured())
            for (auto const& each : node) take_named_in(each);
    }

    Json const& shared_;
    std::string prefix_;
    std::map<std::string, Json> components_;  // by place
};

void take_shared(Json& document, std::string const& path) {
    auto const shared = json_of(YAML::LoadFile(path));
    Taken taken(shared, path.substr(path.rfind('/') + 1) + "#");
    taken.resolve(document);
    taken.add_to(document);
}

std::string literal(std::string const& text) {
    if (text.find(")document\"") != std::string::npos)
        throw std::runtime_error("a document has the mark that ends it in the source");
    return "R\"document(" + text + ")document\"";
}

}  // namespace

int main(int count, char** arguments) try {
    if (count != 5 && count != 6)
        throw std::runtime_error("run it as embed OPENAPI PROBLEMS JSON SOURCE [SHARED]");
    auto document = json_of(YAML::LoadFile(arguments[1]));
    if (count == 6) take_shared(document, arguments[5]);
    auto const openapi = document.dump() + "\n";
    write(arguments[3], openapi);
    write(arguments[4],
          "#include \"service/documents/documents.hpp\"\n"
          "namespace vfmgr::documents {\n"
          "std::string_view const openapi = " +
              literal(openapi) +
              ";\nstd::string_view const problems = " + literal(text_of(arguments[2])) + ";\n}\n");
    return 0;
} catch (std::exception const& failure) {
    std::cerr << "embed: " << failure.what() << "\n";
    return 1;
}
