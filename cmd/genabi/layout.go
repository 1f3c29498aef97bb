package main

import (
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"strings"
)

// A layout is what the compiler made of the headers, in the order of the headers.
type layout struct {
	structs []structType
	enums   []enumType
}

type structType struct {
	name    string
	size    int64
	comment string
	members []member
}

type member struct {
	name    string
	typ     ctype
	offset  int64
	comment string
}

type enumType struct {
	name    string
	comment string
	values  []enumValue
}

type enumValue struct {
	name    string
	value   int64
	comment string
}

// A ctype is a member's type, taken apart as far as the outputs need it.
type ctype struct {
	c      string // as one would declare it, "uint64_t[4]"
	size   int64
	elem   *ctype // of an array
	count  int64  // of an array
	record string // name of a struct of ours
	scalar string // Go name of the machine type
}

// readLayout reads the types named in the headers from the object file's debug information.
func readLayout(object string, headers []header, strict bool) (layout, error) {
	f, err := elf.Open(object)
	if err != nil {
		return layout{}, fmt.Errorf("open object: %w", err)
	}
	defer f.Close()
	data, err := f.DWARF()
	if err != nil {
		return layout{}, fmt.Errorf("read debug information of %s: %w", object, err)
	}
	r := layoutReader{data: data, strict: strict, ours: map[string]bool{}}
	for _, h := range headers {
		for _, t := range h.types {
			r.ours[t.keyword+" "+t.name] = true
		}
	}
	entries, err := r.findTypes()
	if err != nil {
		return layout{}, err
	}
	var l layout
	for _, h := range headers {
		for _, t := range h.types {
			e := entries[t.keyword+" "+t.name]
			if e == nil {
				return layout{}, fmt.Errorf("%s %s is not in %s", t.keyword, t.name, object)
			}
			if t.keyword == "enum" {
				en, err := r.readEnum(e, h.enumComments(t.line))
				if err != nil {
					return layout{}, err
				}
				en.comment = h.comments[t.line]
				l.enums = append(l.enums, en)
				continue
			}
			st, err := r.readStruct(e, h)
			if err != nil {
				return layout{}, err
			}
			st.comment = h.comments[t.line]
			l.structs = append(l.structs, st)
		}
	}
	return l, nil
}

type layoutReader struct {
	data   *dwarf.Data
	strict bool
	ours   map[string]bool
}

// findTypes returns the defining entry of each type of ours.
func (r *layoutReader) findTypes() (map[string]*dwarf.Entry, error) {
	found := map[string]*dwarf.Entry{}
	rd := r.data.Reader()
	for {
		e, err := rd.Next()
		if err != nil {
			return nil, fmt.Errorf("walk debug information: %w", err)
		}
		if e == nil {
			return found, nil
		}
		keyword := ""
		switch e.Tag {
		case dwarf.TagStructType:
			keyword = "struct"
		case dwarf.TagEnumerationType:
			keyword = "enum"
		default:
			continue
		}
		name, _ := e.Val(dwarf.AttrName).(string)
		declaration, _ := e.Val(dwarf.AttrDeclaration).(bool)
		if key := keyword + " " + name; r.ours[key] && !declaration {
			found[key] = e
		}
	}
}

// children calls f for every direct child of e.
func (r *layoutReader) children(e *dwarf.Entry, f func(*dwarf.Entry) error) error {
	rd := r.data.Reader()
	rd.Seek(e.Offset)
	if _, err := rd.Next(); err != nil {
		return err
	}
	if !e.Children {
		return nil
	}
	for {
		c, err := rd.Next()
		if err != nil {
			return err
		}
		if c == nil || c.Tag == 0 {
			return nil
		}
		if err := f(c); err != nil {
			return err
		}
		if c.Children {
			rd.SkipChildren()
		}
	}
}

func (r *layoutReader) readEnum(e *dwarf.Entry, comments map[string]string) (enumType, error) {
	en := enumType{name: e.Val(dwarf.AttrName).(string)}
	err := r.children(e, func(c *dwarf.Entry) error {
		name, _ := c.Val(dwarf.AttrName).(string)
		value, ok := c.Val(dwarf.AttrConstValue).(int64)
		if !ok {
			return fmt.Errorf("enum %s: %s has no value", en.name, name)
		}
		en.values = append(en.values, enumValue{name, value, comments[name]})
		return nil
	})
	return en, err
}

func (r *layoutReader) readStruct(e *dwarf.Entry, h header) (structType, error) {
	st := structType{name: e.Val(dwarf.AttrName).(string)}
	st.size, _ = e.Val(dwarf.AttrByteSize).(int64)
	err := r.children(e, func(c *dwarf.Entry) error {
		if c.Tag != dwarf.TagMember {
			return nil
		}
		m, err := r.readMember(c)
		if err != nil {
			return fmt.Errorf("struct %s: %w", st.name, err)
		}
		if line, ok := c.Val(dwarf.AttrDeclLine).(int64); ok {
			m.comment = h.comments[int(line)]
		}
		st.members = append(st.members, m)
		return nil
	})
	return st, err
}

func (r *layoutReader) readMember(e *dwarf.Entry) (member, error) {
	name, _ := e.Val(dwarf.AttrName).(string)
	if name == "" {
		return member{}, errors.New("member without a name")
	}
	if e.Val(dwarf.AttrBitSize) != nil || e.Val(dwarf.AttrDataBitOffset) != nil {
		return member{}, fmt.Errorf("%s is a bit-field", name)
	}
	offset, ok := e.Val(dwarf.AttrDataMemberLoc).(int64)
	if !ok {
		return member{}, fmt.Errorf("%s has no constant offset", name)
	}
	ref, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
	if !ok {
		return member{}, fmt.Errorf("%s has no type", name)
	}
	t, err := r.data.Type(ref)
	if err != nil {
		return member{}, fmt.Errorf("%s: %w", name, err)
	}
	typ, err := r.readType(t)
	if err != nil {
		return member{}, fmt.Errorf("%s: %w", name, err)
	}
	return member{name: name, typ: typ, offset: offset}, nil
}

var fixedWidth = map[string]string{
	"uint8_t": "uint8", "uint16_t": "uint16", "uint32_t": "uint32", "uint64_t": "uint64",
	"int8_t": "int8", "int16_t": "int16", "int32_t": "int32", "int64_t": "int64",
}

func (r *layoutReader) readType(t dwarf.Type) (ctype, error) {
	switch t := t.(type) {
	case *dwarf.TypedefType:
		if scalar, ok := fixedWidth[t.Name]; ok {
			return ctype{c: t.Name, size: t.Size(), scalar: scalar}, nil
		}
		if r.strict {
			return ctype{}, fmt.Errorf("%s has no fixed width", t.Name)
		}
		under, err := r.readType(t.Type)
		under.c = t.Name
		return under, err
	case *dwarf.QualType:
		return r.readType(t.Type)
	case *dwarf.CharType, *dwarf.UcharType:
		return ctype{c: "char", size: 1, scalar: "byte"}, nil
	case *dwarf.ArrayType:
		elem, err := r.readType(t.Type)
		if err != nil {
			return ctype{}, err
		}
		if t.Count <= 0 {
			return ctype{}, errors.New("array without a length")
		}
		base, dims, _ := strings.Cut(elem.c, "[")
		if dims != "" {
			dims = "[" + dims
		}
		return ctype{
			c: fmt.Sprintf("%s[%d]%s", base, t.Count, dims), size: elem.size * t.Count,
			elem: &elem, count: t.Count,
		}, nil
	case *dwarf.StructType:
		if t.Kind == "struct" && r.ours["struct "+t.StructName] {
			return ctype{c: "struct " + t.StructName, size: t.ByteSize, record: t.StructName}, nil
		}
	}
	if r.strict {
		return ctype{}, fmt.Errorf("type %s is not allowed here", t)
	}
	return opaque(t)
}

// opaque stands for what Go has no business to look into, such as a pthread_mutex_t, and for
// scalars without a fixed width.
func opaque(t dwarf.Type) (ctype, error) {
	size := t.Size()
	switch t := t.(type) {
	case *dwarf.BoolType:
		return ctype{c: t.String(), size: size, scalar: "bool"}, nil
	case *dwarf.IntType:
		return ctype{c: t.String(), size: size, scalar: fmt.Sprintf("int%d", size*8)}, nil
	case *dwarf.UintType:
		return ctype{c: t.String(), size: size, scalar: fmt.Sprintf("uint%d", size*8)}, nil
	case *dwarf.EnumType:
		sign := "uint"
		for _, v := range t.Val {
			if v.Val < 0 {
				sign = "int"
			}
		}
		return ctype{c: "enum " + t.EnumName, size: size, scalar: fmt.Sprintf("%s%d", sign, size*8)}, nil
	case *dwarf.FloatType:
		return ctype{c: t.String(), size: size, scalar: fmt.Sprintf("float%d", size*8)}, nil
	case *dwarf.PtrType:
		return ctype{c: "pointer", size: size, scalar: "uint64"}, nil
	}
	if size <= 0 {
		return ctype{}, fmt.Errorf("type %s has no size", t)
	}
	b := ctype{c: "byte", size: 1, scalar: "byte"}
	return ctype{c: fmt.Sprintf("opaque[%d]", size), size: size, elem: &b, count: size}, nil
}
