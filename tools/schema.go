package tools

import (
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// prop is a property of an object schema.
type prop struct {
	name     string
	required bool
	schema   *jsonschema.Schema
}

// need is a required property, may an optional one.
func need(name string, s *jsonschema.Schema) prop { return prop{name, true, s} }
func may(name string, s *jsonschema.Schema) prop  { return prop{name, false, s} }

// hidden is a property that is accepted but not shown to the model.
func hidden(name string, s *jsonschema.Schema) prop {
	s.Deprecated = true
	return prop{name, false, s}
}

// offered is the schema as shown to a model.
func offered(s *jsonschema.Schema) *jsonschema.Schema {
	out := *s
	out.Properties = maps.Clone(s.Properties)
	maps.DeleteFunc(out.Properties, func(_ string, p *jsonschema.Schema) bool { return p.Deprecated })
	out.PropertyOrder = slices.DeleteFunc(slices.Clone(s.PropertyOrder), func(name string) bool { return out.Properties[name] == nil })
	return &out
}

// object is the schema of an object with exactly these properties, shown to the model in this order.
func object(props ...prop) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for _, p := range props {
		s.Properties[p.name] = p.schema
		s.PropertyOrder = append(s.PropertyOrder, p.name)
		if p.required {
			s.Required = append(s.Required, p.name)
		}
	}
	return s
}

func str(doc string) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Description: doc} }

// nonEmpty is a string that must not be empty.
func nonEmpty(doc string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: doc, MinLength: new(1)}
}

func oneOf(doc string, values ...string) *jsonschema.Schema {
	s := str(doc)
	for _, v := range values {
		s.Enum = append(s.Enum, v)
	}
	return s
}

func integer(doc string, least, most float64) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "integer", Description: doc, Minimum: new(least)}
	if most > 0 {
		s.Maximum = new(most)
	}
	return s
}

func boolean(doc string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "boolean", Description: doc}
}

func list(doc string, items *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Description: doc, Items: items}
}
